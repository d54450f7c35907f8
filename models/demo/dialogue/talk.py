"""Questions about itself, small talk, facts, explanations, memory and copying."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from typing import Any

from dialogue.draw import HERE, Draw, sentences
from dialogue.fields import identifier, message, nonsense, query
from dialogue.records import Exchange, Json, assistant, user

ASK_EXPLAIN = sentences("talk", "ask_explain")
UNKNOWN = sentences("talk", "unknown")
DONT_KNOW = sentences("talk", "dont_know")
ECHO = sentences("talk", "echo")


@cache
def talk() -> dict[str, Any]:
    """The questions and answers of `talk.toml`."""
    return tomllib.loads((HERE / "talk.toml").read_text(encoding="utf-8"))


def from_bank(draw: Draw, bank: str) -> Exchange:
    """A question of one bank with its answer."""
    entry = draw.one(talk()[bank])
    answer = draw.phrase(draw.one(entry["say"]))
    thoughts = draw.one(entry.get("think", ["This is easy to answer."]))
    return Exchange(draw.phrase(draw.one(entry["ask"])), answer, thoughts)


def about_itself(draw: Draw) -> Exchange:
    """A question about the model; half of them ask for its name."""
    if draw.chance(0.4):
        entry = talk()["about_itself"][0]
        return Exchange(draw.phrase(draw.one(entry["ask"])), draw.phrase(draw.one(entry["say"])), entry["think"][0])
    return from_bank(draw, "about_itself")


def explanation(draw: Draw) -> Exchange:
    """A short explanation in prose."""
    entry = draw.one(talk()["explain"])
    topic = draw.one(entry["topic"])
    question = draw.phrase(draw.one(ASK_EXPLAIN), {"topic": topic})
    return Exchange(question, entry["say"][0], f"The user wants to know about {topic}. I explain it in a few sentences.")


def capital(draw: Draw) -> Exchange:
    """The capital of a country."""
    capitals: dict[str, str] = talk()["capitals"]
    country = draw.one(tuple(capitals))
    question = draw.phrase(
        draw.one(("[What is|What's|Name] the capital of {c}[?|]", "Which city is the capital of {c}?", "{c}'s capital?")),
        {"c": country},
    )
    return Exchange(
        question, f"The capital of {country} is {capitals[country]}.", f"{country} has the capital {capitals[country]}."
    )


def opposite(draw: Draw) -> Exchange:
    """The opposite of a word."""
    opposites: dict[str, str] = talk()["opposites"]
    word = draw.one(tuple(opposites))
    question = draw.phrase(draw.one(("[What is|What's|Give me] the opposite of {w}[?|]", "Opposite of {w}?")), {"w": word})
    return Exchange(
        question, f"The opposite of {word} is {opposites[word]}.", f"{word} is the contrary of {opposites[word]}."
    )


def unknown(draw: Draw) -> Exchange:
    """A question that a tiny model cannot know, answered honestly."""
    values = {
        "person": f"{draw.name('person')} {draw.invented().capitalize()}",
        "city": draw.name("city"),
        "word": draw.invented(),
        "year": draw.integer(1500, 2026),
        "query": query(draw),
        "country": draw.invented().capitalize(),
        "song": draw.word("song"),
    }
    return Exchange(draw.phrase(draw.one(UNKNOWN), values), draw.one(DONT_KNOW), "I do not know this, so I say so.")


def echo(draw: Draw) -> Exchange:
    """Copying a text word by word."""
    text = message(draw) if draw.chance(0.4) else " ".join(nonsense(draw) for _ in range(draw.integer(1, 8)))
    text = identifier(draw) if draw.chance(0.15) else text
    return Exchange(draw.phrase(draw.one(ECHO), {"text": text}), text, "I repeat the text.")


def choose_word(draw: Draw) -> Exchange:
    """The longest or shortest of a few words."""
    picked = draw.rng.sample(
        ("cat", "house", "umbrella", "sun", "window", "elephant", "tree", "keyboard", "ox", "mountain", "tea", "river"),
        3,
    )
    if len({len(w) for w in picked}) < 3:
        return opposite(draw)
    word, pick = draw.one((("longest", max), ("shortest", min)))
    lengths = ", ".join(f"{w} has {len(w)} letters" for w in picked)
    chosen = pick(picked, key=len)
    return Exchange(
        f"Which word is the {word}: {', '.join(picked)}?",
        f"The {word} word is {chosen}.",
        f"{lengths}. The {word} is {chosen}.",
    )


def as_json(draw: Draw) -> Exchange:
    """Facts of a sentence as a JSON object."""
    person, city, age = draw.name("person"), draw.name("city"), draw.integer(1, 99)
    record: Json = {"name": person, "age": age, "city": city}
    keys = draw.rng.sample(list(record), draw.integer(2, 3))
    sentence = draw.one(
        (
            f"{person} is {age} years old and lives in {city}.",
            f"{person} from {city} is {age}.",
            f"Name {person}, age {age}, city {city}.",
        )
    )
    asked = draw.one(
        (
            "Return JSON with the keys {k}: {s}",
            "Extract {k} as JSON: {s}",
            "{s} Give me {k} as a JSON object.",
            "Return a JSON object with {k}: {s}",
        )
    ).format(k=", ".join(keys), s=sentence)
    return Exchange(
        asked, json.dumps({key: record[key] for key in keys}, ensure_ascii=False), f"The keys are {', '.join(keys)}."
    )


def memory(draw: Draw) -> list[Json]:
    """Turns in which the user tells something that the last question asks for."""
    what, kind = draw.one(
        (
            ("name", "person"),
            ("city", "city"),
            ("favourite colour", "colour"),
            ("favourite animal", "animal"),
            ("favourite dish", "dish"),
        )
    )
    value = draw.name(kind) if kind in ("person", "city") else draw.word(kind)
    tell = draw.phrase(
        draw.one(("My {w} is {v}.", "[Remember|Note]: my {w} is {v}.", "[Hi|Hello], my {w} is {v}.")),
        {"w": what, "v": value},
    )
    reply = draw.phrase(
        draw.one(("[Ok|Good], your {w} is {v}.", "I will keep that in mind: {v}.", "Noted, {v}.")),
        {"w": what, "v": value},
    )
    ask = draw.phrase(
        draw.one(("What is my {w}?", "[Do you remember|Can you tell me] my {w}?", "Tell me my {w}.")), {"w": what}
    )
    between = [turn for _ in range(draw.integer(0, 2)) for turn in turns_of(small_exchange(draw))]
    return [
        user(tell),
        assistant(reply),
        *between,
        user(ask),
        assistant(f"Your {what} is {value}.", f"The user said that the {what} is {value}."),
    ]


def turns_of(exchange: Exchange, thinking: bool = False) -> list[Json]:
    """A question and an answer as messages."""
    return [user(exchange.question), assistant(exchange.answer, exchange.thoughts if thinking else "")]


def small_exchange(draw: Draw) -> Exchange:
    """Any short question of this module."""
    chance = draw.rng.random()
    if chance < 0.3:
        return about_itself(draw)
    if chance < 0.5:
        return from_bank(draw, "small_talk")
    if chance < 0.58:
        return from_bank(draw, "fact")
    return draw.one((capital, opposite, unknown, echo, echo, choose_word, as_json, explanation, explanation))(draw)

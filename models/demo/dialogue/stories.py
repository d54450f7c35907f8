"""Little tales, letters and lists: prose that leaves the next word open."""

from __future__ import annotations

from dialogue.draw import Draw, sentences
from dialogue.records import Exchange

ASK = sentences("stories", "ask")
OPENINGS = sentences("stories", "openings")
MIDDLES = sentences("stories", "middles")
ENDINGS = sentences("stories", "endings")
POEM = sentences("stories", "poem")
LINES = sentences("stories", "lines")


def values_of(draw: Draw) -> dict[str, str]:
    """The people and things of one tale."""
    adjective, animal = draw.word("adjective"), draw.word("animal")
    article = "an" if adjective[0] in "aeiou" else "a"
    return {
        "animal": animal,
        "other": draw.word("animal"),
        "name": draw.name("person"),
        "city": draw.name("city"),
        "a": f"{article} {adjective}",
        "adjective": draw.word("adjective"),
        "thing": draw.word("thing"),
        "room2": draw.word("room"),
    }


def story(draw: Draw) -> Exchange:
    """A tale of four to ten sentences."""
    values = values_of(draw)
    question = draw.phrase(draw.one(ASK), values)
    sentences = [draw.phrase(draw.one(OPENINGS), values)]
    for line in draw.rng.sample(MIDDLES, draw.integer(2, 8)):
        values |= {
            "adjective": draw.word("adjective"),
            "thing": draw.word("thing") if draw.chance(0.6) else values["thing"],
        }
        sentences.append(draw.phrase(line, values))
    sentences.append(draw.phrase(draw.one(ENDINGS), values))
    return Exchange(
        question, " ".join(sentences), f"The user wants a story. It could be about {values['a']} {values['animal']}."
    )


def poem(draw: Draw) -> Exchange:
    """Four lines."""
    values = values_of(draw)
    question = draw.phrase(draw.one(POEM), values)
    return Exchange(question, draw.phrase("\n".join(LINES), values), "The user wants a poem. Four lines are enough.")


def listing(draw: Draw) -> Exchange:
    """A few things of one kind."""
    kind, words = draw.one(
        (
            ("animals", "animal"),
            ("colours", "colour"),
            ("things", "thing"),
            ("cities", "city"),
            ("dishes", "dish"),
            ("languages", "language"),
        )
    )
    count = draw.integer(2, 6)
    chosen = dict.fromkeys(draw.word(words) for _ in range(count * 3))
    question = draw.phrase(
        draw.one(("[Name|List|Give me] {n} {k}[.|]", "Can you name {n} {k}?", "[Write|Make] a list of {n} {k}[.|]")),
        {"n": count, "k": kind},
    )
    return Exchange(question, ", ".join(list(chosen)[:count]) + ".", f"I name {count} {kind}.")


def prose(draw: Draw) -> Exchange:
    """One request for free text."""
    return draw.one((story, story, story, poem, listing))(draw)

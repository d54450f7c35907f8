"""Small sums and choices, with the steps a thinking model would write."""

from __future__ import annotations

from dialogue.draw import Draw, sentences
from dialogue.records import Exchange

SIGNS = {"+": ("plus", "{a} + {b}"), "-": ("minus", "{a} - {b}"), "*": ("times", "{a} * {b}")}
ASK_SUM = sentences("arithmetic", "ask_sum")
MORE = sentences("arithmetic", "more")
FEWER = sentences("arithmetic", "fewer")
GROUPS = sentences("arithmetic", "groups")


def operands(draw: Draw, sign: str) -> tuple[int, int]:
    """Two numbers small enough for a tiny model."""
    if sign == "*":
        return draw.integer(2, 12), draw.integer(2, 12 if draw.chance(0.7) else 20)
    digits = draw.one((1, 1, 2, 2, 2, 3))
    a, b = draw.integer(0, 10**digits - 1), draw.integer(0, 10**digits - 1)
    return (max(a, b), min(a, b)) if sign == "-" else (a, b)


def result(a: int, b: int, sign: str) -> int:
    """The value of `a sign b`."""
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def column_steps(a: int, b: int, sign: str) -> str:
    """An addition or a subtraction by tens and ones."""
    tens = b - b % 10
    if b < 10 or tens == b:
        return f"{a} {sign} {b} = {result(a, b, sign)}."
    middle = result(a, tens, sign)
    return f"{a} {sign} {tens} = {middle}. {middle} {sign} {b % 10} = {result(a, b, sign)}."


def product_steps(a: int, b: int) -> str:
    """A multiplication by tens and ones."""
    if b <= 10:
        return f"{a} * {b} = {a * b}."
    return f"{a} * 10 = {a * 10}. {a} * {b - 10} = {a * (b - 10)}. {a * 10} + {a * (b - 10)} = {a * b}."


def steps(a: int, b: int, sign: str) -> str:
    """How to get the result."""
    return product_steps(a, b) if sign == "*" else column_steps(a, b, sign)


def plain_sum(draw: Draw) -> Exchange:
    """A bare sum in symbols or words."""
    sign = draw.one(tuple(SIGNS))
    a, b = operands(draw, sign)
    word = SIGNS[sign][0] if draw.chance(0.35) else sign
    glue = "" if word == sign and draw.chance(0.25) else " "
    said = f"{a}{glue}{word}{glue}{b}"
    answer = draw.phrase(
        draw.one(("{a} {sign} {b} = {c}.", "{a} {sign} {b} is {c}.", "{a} {sign} {b} = {c}")),
        {"a": a, "b": b, "sign": sign, "c": result(a, b, sign)},
    )
    return Exchange(draw.phrase(draw.one(ASK_SUM), {"said": said}), answer, f"I need {a} {sign} {b}. {steps(a, b, sign)}")


def word_problem(draw: Draw) -> Exchange:
    """A sum in a little story."""
    sign = draw.one(tuple(SIGNS))
    a, b = operands(draw, sign)
    stories = {"+": MORE, "-": FEWER, "*": GROUPS}[sign]
    thing = draw.value("thing")
    question = draw.phrase(draw.one(stories), {"a": a, "b": b, "thing": thing, "person": draw.name("person")})
    c = result(a, b, sign)
    kinds = {"+": "added", "-": "taken away", "*": "multiplied"}
    coins = "coins" in question
    answer = f"{a} {sign} {b} = {c}, so the answer is {c} {'coins' if coins else thing + 's'}."
    return Exchange(question, answer, f"The numbers {a} and {b} are {kinds[sign]}. {steps(a, b, sign)}")


def larger(draw: Draw) -> Exchange:
    """The larger or smaller of two numbers."""
    a, b = draw.integer(0, 999), draw.integer(0, 999)
    b += a == b
    word, pick = draw.one((("larger", max), ("bigger", max), ("smaller", min), ("greater", max)))
    question = draw.phrase(
        draw.one(
            (
                "[Which|Which number] is {word}, {a} or {b}?",
                "What is {word}: {a} or {b}?",
                "Pick the {word} [one|number]: {a}, {b}",
            )
        ),
        {"word": word, "a": a, "b": b},
    )
    chosen = pick(a, b)
    return Exchange(
        question, f"{chosen} is {word}.", f"I compare {a} and {b}. {max(a, b)} > {min(a, b)}, so {chosen} is {word}."
    )


def parity(draw: Draw) -> Exchange:
    """Whether a number is even."""
    n = draw.integer(0, 9999)
    kind = "odd" if n % 2 else "even"
    question = draw.phrase(
        draw.one(("Is {n} [even or odd|odd or even]?", "Is {n} an [even|odd] number?", "{n}: [even or odd|odd or even]?")),
        {"n": n},
    )
    return Exchange(question, f"{n} is {kind}.", f"The last digit of {n} is {n % 10}, which is {kind}.")


def count_up(draw: Draw) -> Exchange:
    """Counting from one number to another."""
    start, length = (1 if draw.chance(0.6) else draw.integer(2, 40)), draw.integer(3, 30)
    end = start + length
    question = draw.phrase(
        draw.one(
            (
                "Count from {a} to {b}[.|]",
                "[Please count|Can you count] from {a} to {b}[.|?]",
                "[List|Write] the numbers from {a} to {b}[.|]",
                *(("Count to {b}[.|]", "Can you count to {b}?") if start == 1 else ()),
            )
        ),
        {"a": start, "b": end},
    )
    return Exchange(
        question, ", ".join(map(str, range(start, end + 1))) + ".", f"I start at {start} and add one until {end}."
    )


def order(draw: Draw) -> Exchange:
    """Sorting a few numbers."""
    numbers = draw.rng.sample(range(100), draw.integer(3, 5))
    question = draw.phrase(
        draw.one(
            (
                "Sort these numbers: {n}",
                "Sort {n}[.|]",
                "[Put|Bring] {n} in[to|] order.",
                "Order these from small to large: {n}",
            )
        ),
        {"n": draw.one((", ", " ")).join(map(str, numbers))},
    )
    return Exchange(
        question,
        ", ".join(map(str, sorted(numbers))) + ".",
        f"The smallest is {min(numbers)} and the largest is {max(numbers)}.",
    )


def arithmetic(draw: Draw) -> Exchange:
    """One question about numbers."""
    return draw.one(
        (plain_sum, plain_sum, plain_sum, plain_sum, word_problem, word_problem, larger, parity, count_up, order)
    )(draw)

"""Whether tools are called as a request says, and their results are taken up."""

from __future__ import annotations

from stoker.probes.kit.answer import Answer, ToolCall
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, all_thought, degraded, failed, not_offered, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import read_json
from stoker.probes.kit.tool_flags import advise_flags, advise_forbidding, advise_forcing, has_mark
from stoker.probes.kit.tools import QUESTION, TOKENS, TOOLS, TWO_QUESTIONS, called, fault_of, is_same, named

RESULT = '{"weather": "violet fog", "degrees": 47}'
CUT = f"its {TOKENS} tokens were used up before the call was whole, so there is none to judge"
NO_CALL = "a model may choose not to call; if a larger one does not either, its parser or template is wrong"


async def none(ask: Asker) -> Finding:
    """With `tool_choice` none nothing is called."""
    answer = await ask.chat(QUESTION, max_tokens=TOKENS, tools=TOOLS, tool_choice="none")
    if answer.calls:
        return failed(f"tool_choice was none, and it calls {_say(answer.calls)}")
    if has_mark(answer.text):
        return degraded(
            f"tool_choice was none, and the model writes a call into its text: {answer.text[:60]!r}",
            await advise_forbidding(ask),
        )
    return passed("nothing is called when nothing may be")


async def auto(ask: Asker) -> Finding:
    """With `tool_choice` auto the tool that fits is called, with arguments that its schema allows."""
    try:
        answer = await ask.chat(QUESTION, max_tokens=TOKENS, tools=TOOLS, tool_choice="auto")
    except Declined as no:
        return not_offered(no.says, await advise_flags(ask))
    if answer.is_thought_alone:
        return all_thought(TOKENS)
    if not answer.calls:
        return await _no_call(ask, answer)
    if fault := fault_of(answer.calls[0]):
        return degraded(
            fault, "with `auto` the arguments are the model's own; `strict` or `required` lets the engine enforce them"
        )
    if answer.finish == "length":
        return unknown(CUT)
    if answer.finish != "tool_calls":
        return failed(f"it calls a tool and says that it ended for {answer.finish!r}: agents stop there")
    return passed(f"it calls {_say(answer.calls)}")


async def _no_call(ask: Asker, answer: Answer) -> Finding:
    if has_mark(answer.text):
        flags = await advise_flags(ask, answer.text)
        return failed(f"the model writes a call, and the engine hands it on as text: {answer.text[:60]!r}", flags)
    return degraded(f"asked for the weather it calls nothing, and says {answer.text[:60]!r}", NO_CALL)


async def required(ask: Asker) -> Finding:
    """With `tool_choice` required a tool is called, whatever was said."""
    return await _forced(ask, "Say hello.", "required", None)


async def one_by_name(ask: Asker) -> Finding:
    """With a tool named in `tool_choice` that tool is called, although another would fit."""
    return await _forced(ask, QUESTION, named("get_time"), "get_time")


async def _forced(ask: Asker, question: str, choice: object, wanted: str | None) -> Finding:
    """The engine can enforce this by its grammar, whatever the model is; so a fault is the engine's."""
    try:
        answer = await ask.chat(question, max_tokens=TOKENS, tools=TOOLS, tool_choice=choice)
    except Declined as no:
        return not_offered(no.says, await advise_flags(ask))
    if answer.is_thought_alone:
        return all_thought(TOKENS)
    if not answer.calls:
        return failed(
            f"a call was required, and it says {(answer.text or answer.thought)[:60]!r}", await advise_forcing(ask)
        )
    call = answer.calls[0]
    if wanted is not None and call.name != wanted:
        return failed(f"{wanted} was named, and it calls {_say(answer.calls)}", await advise_forcing(ask))
    if fault := fault_of(call):
        return failed(fault)
    return passed(f"it calls {_say(answer.calls)}")


async def parallel(ask: Asker) -> Finding:
    """Two things that were asked for at once are called for at once."""
    try:
        answer = await ask.chat(TWO_QUESTIONS, max_tokens=2 * TOKENS, tools=TOOLS, parallel_tool_calls=True)
    except Declined as no:
        return not_offered(no.says)
    if len(answer.calls) < 2:
        return unknown(f"asked for two things it calls {_say(answer.calls) or 'nothing'}: it may be the model that does not")
    if faults := [fault for call in answer.calls if (fault := fault_of(call))]:
        return failed(faults[0])
    if len({call.id for call in answer.calls}) < len(answer.calls):
        return failed("its calls have the same id, so their results cannot be told apart")
    return passed(f"it calls {_say(answer.calls)} at once")


async def streamed(ask: Asker) -> Finding:
    """The deltas of a streamed call make the same call as one that is not streamed."""
    try:
        whole = await ask.chat(QUESTION, max_tokens=TOKENS, tools=TOOLS)
        stream = await ask.stream(QUESTION, max_tokens=TOKENS, tools=TOOLS)
    except Declined as no:
        return not_offered(no.says)
    if not whole.calls:
        return unknown("it calls nothing when not streamed, so there is nothing to compare")
    if stream.answer.is_thought_alone:
        return all_thought(TOKENS)
    if "length" in (whole.finish, stream.answer.finish):
        return unknown(CUT)
    if not stream.answer.calls:
        return failed(f"streamed it calls nothing, and says {stream.answer.text[:60]!r}")
    one, other = whole.calls[0], stream.answer.calls[0]
    if fault := fault_of(other):
        return failed(f"streamed: {fault}")
    if fault_of(one) or not is_same(one, other):
        return await _judge_difference(ask, one, other)
    if stream.answer.finish != "tool_calls":
        return failed(f"streamed it says that it ended for {stream.answer.finish!r}, and agents wait for tool_calls")
    return passed(f"streamed it calls {_say([other])} too")


async def _judge_difference(ask: Asker, one: ToolCall, other: ToolCall) -> Finding:
    """Where the same question asked whole gets another call each time, a streamed one that differs proves nothing."""
    again = (await ask.chat(QUESTION, max_tokens=TOKENS, tools=TOOLS)).calls
    differs = f"streamed it calls {_say([other])}, otherwise {_say([one])}"
    if not fault_of(one) and again and not fault_of(again[0]) and not is_same(one, again[0]):
        return unknown(f"{differs}, and asked once more {_say(again)}: its greedy answers differ")
    return failed(differs)


async def result(ask: Asker) -> Finding:
    """The result of a tool is taken up in the next answer."""
    turns = called('{"city": "Paris"}', RESULT)
    try:
        answer = await ask.chat(turns, max_tokens=TOKENS, tools=TOOLS, tool_choice="none")
    except Declined as no:
        return failed(f"a tool's result is refused: {no.says}", "agents cannot go on after their first call")
    if "violet" in answer.text.lower() or "47" in answer.text:
        return passed(f"it takes the result up: {answer.text[:60]!r}")
    if answer.is_thought_alone:
        return all_thought(TOKENS)
    return degraded(f"the result said violet fog and 47 degrees, and it says {answer.text[:60]!r}", NO_CALL)


async def responses(ask: Asker) -> Finding:
    """`/v1/responses`, where it exists, calls tools too."""
    tools = [{"type": "function", **one["function"]} for one in TOOLS]
    body = {"model": ask.target.model, "input": QUESTION, "tools": tools, "max_output_tokens": TOKENS, "temperature": 0}
    try:
        output = read_json(await ask.send("/responses", body)).get("output")
    except Declined as no:
        return not_offered(f"/v1/responses: {no.says}")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    if called := [str(item.get("name")) for item in items if item.get("type") == "function_call"]:
        return passed(f"/v1/responses calls {', '.join(called)}")
    if has_mark(str(items)):
        return failed("/v1/responses hands the call on as text", await advise_flags(ask, str(items)))
    return degraded("/v1/responses answers, and calls nothing", "use /v1/chat/completions for tools with this engine")


def _say(calls: list[ToolCall]) -> str:
    return ", ".join(f"{call.name}({call.arguments[:60]})" for call in calls)


PROBE = Probe(
    name="tools",
    sends="Two tools, with each kind of `tool_choice`, streamed and whole; a tool's result; the same to `/v1/responses`.",
    expects="The tool that was asked for, or fits, with valid arguments, streamed too; an answer that uses the result.",
    means="Agents get prose where they wait for a call, stop after their first one, or a router answers in its place.",
    mend="start the engine with the parser of the model's family; `stoker rules --search tool-call-parser` knows some",
    checks=(none, auto, required, one_by_name, parallel, streamed, result, responses),
    tokens=10 * TOKENS,
    gate=(auto, streamed),
    gate_tokens=4 * TOKENS,
)

"""From a wish to a plan: reads the models it names and the machine it is for, and chooses."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.config import DEMO, Config, demo_model, find_paths, is_hub_name, with_whole_paths
from stoker.door_tables import model_of
from stoker.engines import Engine, find, image_parts, version_in_tag
from stoker.errors import Refused, StokerError, WrongUse, service_hint
from stoker.facts.engine.catalogs import find_catalog
from stoker.facts.engine.help import read_engine_flags, read_image_flags
from stoker.facts.engine.image import entry_words, find_image
from stoker.facts.engine.venv import read_venv
from stoker.facts.machine.boxes import THIS, read_box
from stoker.facts.machine.read import read_package_version
from stoker.facts.model.gguf_model import find_gguf_draft
from stoker.facts.model.read import read_model
from stoker.flows.naming import check_names
from stoker.plan.choose import with_id
from stoker.plan.command import COMMAND, plan_command
from stoker.plan.engine_choice import LLAMACPP, choose_engine
from stoker.plan.ground import Ground
from stoker.plan.report import check_report, make_report
from stoker.plan.room import Claim
from stoker.plan.situation import assumed_version
from stoker.plan.wishes import USER, name_for
from stoker.records import Catalog, Environment, Model, NearCatalog, Plan, Report, Wish
from stoker.rules.load import load_rules
from stoker.rules.match import preferred
from stoker.written_paths import is_there

DEMO_MODEL = "stoker-demo"
CONTAINER_PROGRAMS = ("docker", "podman")


def demo_wish() -> Wish:
    """Returns the wish for the bundled demo model."""
    return Wish(name=DEMO, model=str(demo_model()), served_name=DEMO_MODEL, reasoning="off")


def served_names(config: Config) -> dict[str, str | None]:
    """Returns the services that a command may name, the demo among them, each with the model that clients ask for."""
    wishes = {DEMO: demo_wish(), **config.services}
    return {name: model_of(wishes[name]) for name in sorted(wishes)}


def find_wish(target: str | None, config: Config) -> Wish:
    """Returns the wish that a word on the command line stands for: nothing (the demo), a service, a path or a hub name."""
    if target is None or (target == DEMO and DEMO not in config.services):
        return demo_wish()
    if target in config.services:
        return config.services[target]
    path = Path(target)
    if not is_there(path) and "/" not in target and path.suffix != ".gguf":
        otherwise = f"name a service ({', '.join(served_names(config))}), a GGUF file, or a folder that holds a model"
        raise WrongUse(
            f"there is no service called `{target}` and no file of that name",
            next_step=service_hint(target, served_names(config), otherwise),
        )
    stem = path.stem if path.suffix == ".gguf" else path.resolve().name
    return Wish(name=name_for(stem), model=target if is_hub_name(target, Path.cwd()) else str(path.absolute()))


def make_plan(wish: Wish) -> Plan:
    """Returns the plan for a wish on this machine; raises Refused or WrongUse where it cannot work."""
    check_names(wish)
    check_one_box(wish)
    if wish.engine == COMMAND:
        return _check_words(plan_command(wish))
    return bind_plan(report_on(wish))


def check_one_box(wish: Wish) -> None:
    """Raises Refused for a service over several boxes: a part of it alone would answer nobody."""
    if wish.boxes:
        raise Refused(
            f"{wish.name} is one model over {len(wish.boxes)} boxes, and this would start a part of it alone",
            why="each box has to start its own part, and one that is alone waits for the others until it gives up",
            next_step=f"`stoker up {wish.name}` on the first of them starts all, by the links to the others",
        )


def bind_plan(report: Report) -> Plan:
    """Returns a report's plan as this machine would start it; raises Refused where what it needs is not here."""
    return bind(check_report(report))


def bind(plan: Plan) -> Plan:
    """Returns a plan as this machine would start it; raises Refused where what it needs is not here."""
    if plan.image is not None:
        return _with_image(plan, plan.image)
    _check_program(plan)
    return plan


def _check_words(plan: Plan) -> Plan:
    if plan.program and shutil.which(plan.program[0]) is None:
        raise Refused(
            f"there is no program `{plan.program[0]}`",
            next_step=f"set `program` of [service.{plan.service}] to the whole path of a program that may be run",
        )
    return plan


def _with_image(plan: Plan, image: str) -> Plan:
    """Returns the plan bound to what the image's name stands for now: a tag moves, and its plan is another one then.

    Raises Refused for an image that is not here; where no program can tell, the start itself will.
    """
    local = LocalBox()
    found = find_image(local, image)
    if found is not None:
        return with_id(msgspec.structs.replace(plan, plan_id="", image_id=found.digest))
    if any(local.find_program(name) for name in CONTAINER_PROGRAMS):
        raise Refused(
            f"the image {image} is not on this machine",
            why="an engine is started from what is here, and never by a download that nobody sees",
            next_step=f"`stoker fetch {plan.service}` pulls it",
        )
    return plan


def _check_program(plan: Plan) -> None:
    program = (plan.program or find(plan.engine).program)[0]
    if plan.engine != LLAMACPP and shutil.which(program) is None:
        raise Refused(
            f"{plan.engine} is not installed here",
            why=f"there is no program `{program}` on PATH",
            next_step=f"set `program` of [service.{plan.service}] to its command, such as ['/opt/venv/bin/{program}', ...]",
        )


def report_on(wish: Wish, box: str = THIS, running: tuple[Claim, ...] = ()) -> Report:
    """Returns everything that is to be said of a wish on a machine; raises Refused where it contradicts itself.

    Where nobody named an image or a program and the engine is not installed here, the plan is for the image that a rule
    names for that machine. `running` are the services whose memory would come back if they stopped.
    """
    if wish.engine == COMMAND:
        return Report(plan_command(wish), None, USER)
    ground = read_ground(wish, box, running)
    found = preferred(ground.rules, ground.facts()).get("image") if _needs_image(ground, box) else None
    if found is not None:
        image, rule = found
        ground = read_ground(msgspec.structs.replace(wish, image=str(image)), box, running)
        because = f"{read_because(ground, wish)}; in the image of rule {rule.id}"
        ground = msgspec.structs.replace(ground, engine_because=because)
    return make_report(ground)


def read_because(ground: Ground, wish: Wish) -> str:
    """Returns why this engine was chosen, before the image was."""
    return choose_engine(wish, ground.model, ground.machine)[1]


def _needs_image(ground: Ground, box: str) -> bool:
    if ground.engine == LLAMACPP or ground.image is not None or ground.wish.program:
        return False
    return box != THIS or shutil.which(find(ground.engine).program[0]) is None


def read_ground(wish: Wish, box: str = THIS, running: tuple[Claim, ...] = ()) -> Ground:
    """Reads the models, the machine, the rules and the flags that a plan stands on."""
    _check_server(wish)
    machine, model = read_box(box), read_model(Path(wish.model))
    engine, because = choose_engine(wish, model, machine)
    environment = _read_environment(wish) if box == THIS and (engine != LLAMACPP or wish.image) else None
    version = _read_version(find(engine), wish) or (environment.version if environment else None)
    ground = Ground(
        wish=wish, model=model, draft=read_draft(wish), machine=machine, rules=load_rules(engine), engine=engine,
        engine_because=because, image=wish.image, version=version, running=running, environment=environment,
    )  # fmt: skip
    if assumed := assumed_version(ground.rules, ground.facts()):
        because = f"{because}; which version it is, is unknown: judged as {assumed}"
        ground = msgspec.structs.replace(ground, version=assumed, engine_because=because)
        return msgspec.structs.replace(ground, near=_find_flags(ground, box, is_guess=True))
    return msgspec.structs.replace(ground, near=_find_flags(ground, box))


def _find_flags(ground: Ground, box: str, is_guess: bool = False) -> NearCatalog:
    """The flags of the engine's version: those shipped, else those that the user's own engine prints, else the nearest.

    What the flags of a version that is only guessed at lack is warned of, not refused: the catalog tells why it stands in.
    """
    near = find_catalog(ground.engine, ground.version)
    why = near.why or ("the version is a guess" if is_guess else "")
    if why and box == THIS and ground.engine != LLAMACPP:
        try:
            if own := _ask_engine(ground):
                return NearCatalog(own)
        except (StokerError, OSError):  # it will say so itself when it is started
            pass
    return NearCatalog(near.catalog, why)


def _ask_engine(ground: Ground) -> Catalog | None:
    """The flags that the engine in the wish's image or program prints; None where neither is on this machine."""
    engine, program, image = ground.engine, ground.wish.program, ground.environment
    cache = find_paths().state / "flags"
    if ground.image is None:
        return read_engine_flags(LocalBox(), engine, program, ground.version, cache) if program else None
    if image is None:
        return None
    words = program or entry_words(image, engine) or find(engine).program
    return read_image_flags(LocalBox(), engine, image, words, ground.version, cache)


def _read_environment(wish: Wish) -> Environment | None:
    """What the image or the program's virtual environment holds, where it is on this machine."""
    local = LocalBox()
    if wish.image:
        return find_image(local, wish.image)
    folder = Path(wish.program[0]).parent.parent if wish.program else None
    return read_venv(local, str(folder)) if folder and (folder / "pyvenv.cfg").exists() else None


def _read_version(engine: Engine, wish: Wish) -> str | None:
    if wish.version:
        return wish.version
    if wish.image:
        return version_in_tag(image_parts(wish.image)[1])
    argv = engine.version_argv(wish.server or (wish.program[0] if wish.program else None))
    if argv is None:
        return read_package_version(engine.package) if engine.package and not wish.program else None
    printed = LocalBox().run(argv)
    return engine.parse_version(printed) if printed else None


def read_draft(wish: Wish) -> Model | None:
    """Returns the model or head that drafts for a wish: what it names, what lies beside its model, or the demo's own."""
    if wish.speculation == "off":
        return None
    if wish.draft:
        return read_model(Path(wish.draft))
    if beside := draft_beside(wish):
        return read_model(beside)
    own = wish.speculation == "draft" and Path(wish.model) == demo_model()
    return read_model(demo_model(draft=True)) if own else None


def draft_beside(wish: Wish) -> Path | None:
    """Returns the draft model that lies in the folder of a wish's model; None where the wish says another way."""
    folder = Path(wish.model)
    may_draft = wish.draft is None and wish.speculation in ("auto", "draft")
    return find_gguf_draft(folder) if may_draft and folder.is_dir() else None


def _check_server(wish: Wish) -> None:
    if wish.server and not Path(wish.server).is_file():
        raise Refused(
            f"there is no engine program at {wish.server}",
            next_step="give the full path of a `llama-server`, or leave `server` out to use the embedded engine",
        )


def with_options(wish: Wish, options: dict[str, object]) -> Wish:
    """Returns the wish with the options that were given on the command line."""
    given = {name: value for name, value in options.items() if value is not None}
    return with_whole_paths(msgspec.structs.replace(wish, **given), Path.cwd())

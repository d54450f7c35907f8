// Begins: asks for the session, hears what is so, and shows the view that the address names.

import { benchView } from "./bench.js";
import { clientsView } from "./clients.js";
import { Feed } from "./feed.js";
import { say, show } from "./dom.js";
import { ago, clock, now } from "./format.js";
import { leave, session, showLogin } from "./login.js";
import { tellFault } from "./notices.js";
import { nowView } from "./now.js";
import { serviceView } from "./service.js";
import { verifyView } from "./verify.js";

const place = document.getElementById("main"), stale = document.getElementById("stale"), logout = document.getElementById("logout");
const VIEWS = { __proto__: null, service: serviceView, verify: verifyView, bench: benchView, clients: clientsView };
const views = document.getElementById("views");
let view = null, looksOn = false, lostAt = 0, hasNews = false;
const feed = new Feed({ onChange: take, onLost: lose, onRefused: begin });

// Addresses are typed and passed on by people: one that is not well formed names nothing that exists.
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function take() {
  const isFirst = !hasNews;
  [lostAt, hasNews] = [0, true];
  if (isFirst) route();
  else update();
}

function lose() {
  lostAt ||= now();
  update();
}

function update() {
  show(stale, lostAt > 0);
  document.body.classList.toggle("is-stale", lostAt > 0);
  if (lostAt) say(stale, `The daemon has not been heard since ${clock(lostAt)}: what is shown is what was so then.`);
  const daemon = feed.pieces.get("daemon");
  if (daemon) say(document.getElementById("daemon"), `${daemon.version} · up ${ago(daemon.since)} · ${daemon.url}`);
  if (view && hasNews) view.update(feed.pieces);
}

function route() {
  if (!hasNews) return;
  view?.close();
  const [, kind, name, tab] = location.hash.split("/").map(decoded), open = VIEWS[kind];
  const now = kind === "service" || !open ? "" : kind;
  for (const link of views.children) {
    if (link.dataset.view === now) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view = open && (name || kind !== "service") ? open(place, name, tab, { looksOn }) : nowView(place, { looksOn });
  update();
}

function enter(told) {
  [looksOn, hasNews] = [told.looks_on, false];
  show(logout, true);
  show(views, true);
  show(document.getElementById("looks-on"), looksOn);
  feed.open();
}

function login(why) {
  feed.close();
  feed.pieces.clear();
  view?.close();
  [view, hasNews, lostAt] = [null, false, 0];
  show(logout, false);
  show(views, false);
  update();
  showLogin(place, why, enter);
}

async function begin() {
  try {
    const told = await session();
    if (told.logged_in) enter(told);
    else login(hasNews ? "The session is over." : "");
  } catch {
    lose();
    setTimeout(begin, 2000);
  }
}

logout.addEventListener("click", () => leave().catch(tellFault).then(() => login("")));
addEventListener("hashchange", route);
setInterval(update, 1000);
begin();

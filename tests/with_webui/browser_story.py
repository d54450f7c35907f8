"""Played by the Python of tools/make-clients: a person opens Open WebUI in Chromium, picks the model and chats."""

from __future__ import annotations

import json
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright

url, chromium, picture, question = sys.argv[1:]


def chat(page: Page) -> dict[str, Any]:
    """Returns the models that are offered, and what the one that is chosen answers."""
    page.set_default_timeout(90_000)
    news = page.get_by_role("button", name="Okay, Let's Go!")
    page.add_locator_handler(news, lambda button: button.click())
    page.goto(url)
    page.locator("#chat-input").wait_for()
    page.locator("#model-selector-model-button").click()
    models = page.locator("[role='option'], [role='menuitemradio'], [aria-roledescription='model-item']").all_inner_texts()
    page.keyboard.press("Escape")
    page.locator("#chat-input").click()
    page.keyboard.type(question)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Regenerate").wait_for()  # is offered when an answer, or an error, is whole
    return {"models": models, "answer": page.locator(".chat-assistant").last.inner_text()}


with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page()
    try:
        print(json.dumps(chat(page)))
    finally:
        page.screenshot(path=picture)
        browser.close()

"""A headless Chromium for tests, driven over its debugging pipe: no package, no port, no traffic but to the page."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FOUND = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
WAIT_S = 30.0
KEYS = {
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Escape": ("Escape", 27, ""),
    "Enter": ("Enter", 13, "\r"),
}


class Chromium:
    """One browser with one page; what the page logs and asks for is kept."""

    def __init__(self) -> None:
        assert FOUND is not None
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        read_end, self.write_fd = os.pipe()
        self.read_fd, write_end = os.pipe()

        def places() -> None:  # Chromium reads commands from descriptor 3 and answers on 4
            spare = [os.dup(read_end), os.dup(write_end)]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self.process = subprocess.Popen(
            [FOUND, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=places,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(read_end)
        os.close(write_end)
        self.number, self.buffer = 0, b""
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.read_fd)
        os.close(self.write_fd)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self, deadline: float) -> dict[str, Any]:
        """The next message of the browser; events are noted on the way."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.read_fd, 1 << 16)
            if not piece:
                raise ConnectionError("the browser has ended")
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        self.note(found.get("method"), found.get("params", {}))
        return found

    def note(self, method: str | None, given: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.asked.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"])

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": given}
        if self.session is not None:
            command["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(command).encode("utf-8") + b"\0")
        deadline = time.monotonic() + WAIT_S
        while True:
            found = self.message(deadline)
            if found.get("id") == self.number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                result: dict[str, Any] = found["result"]
                return result

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression in the page (a promise is waited for)."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"])[:500])
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression in the page is true; returns its value."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):  # a page that is being replaced has no answer
                value = self.run(script)
                if value:
                    return value
            time.sleep(0.02)
        raise TimeoutError(f"never true: {script}")

    def press(self, key: str) -> None:
        """A key pressed and released, as from the keyboard."""
        code, number, text = KEYS.get(key, ("", ord(key.upper()) if len(key) == 1 else 0, key))
        given = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def look(self, width: int, height: int, dark: bool) -> None:
        """Set the window's size and the system's colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

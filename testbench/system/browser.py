"""A headless Chromium, driven over its DevTools pipe (file descriptors 3 and 4, messages ended by a zero byte)."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def find_chromium():
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """One page. `errors` gathers exceptions and console errors of its scripts, `requests` the URLs that it asked for."""

    def __init__(self, program, width=1240, height=1000):
        # Helper processes of a browser that has ended may still write into its profile while it is removed.
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Above 4, so that neither is overwritten while it is put into its place.
        for_browser, self.to_browser = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in os.pipe())
        self.from_browser, by_browser = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in os.pipe())

        def connect():
            os.dup2(for_browser, 3)
            os.dup2(by_browser, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--disable-background-networking", "--no-first-run", f"--window-size={width},{height}",
             f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=connect, close_fds=False,
            start_new_session=True)
        os.close(for_browser)
        os.close(by_browser)
        self.buffer = b""
        self.number = 0
        self.errors = []
        self.requests = []
        self.loaded = False
        self.session = None
        pages = []
        deadline = time.monotonic() + 60
        while not pages:
            assert time.monotonic() < deadline, "the browser opens no page"
            pages = [target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.to_browser)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # its helpers, too
        self.process.wait()
        os.close(self.from_browser)
        self.profile.cleanup()

    def message(self, timeout=120):
        deadline = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self.from_browser, 1 << 16)
            assert more, "the browser has ended"
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(about["exceptionDetails"])
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                return answer["result"]
            self.note(answer)

    def open(self, path):
        self.loaded = False
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        while not self.loaded:
            self.note(self.message())

    def evaluate(self, expression):
        """The value of a JavaScript expression, as JSON has it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer.get("exceptionDetails")
        return answer["result"].get("value")

    def box(self, selector):
        """Middle of the element, once it has been scrolled into view."""
        return self.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}}); const b = e.getBoundingClientRect();
            return [b.left + b.width / 2, b.top + b.height / 2]; }})()""")

    def hover(self, selector):
        x, y = self.box(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def media(self, scheme="light", media=""):
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path, clip=None):
        """PNG of the whole page, or of `clip`: (x, y, width, height)."""
        if clip is None:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = (0, 0, size["width"], size["height"])
        x, y, width, height = clip
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                           clip={"x": x, "y": y, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def pdf(self, path):
        answer = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

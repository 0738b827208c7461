"""Pages in a headless Chromium, as a user opens them: what they show, and that they do nothing else."""
import atexit
import json
import os
import subprocess
import sys

SIZES = {"phone": (360, 740), "desktop": (1280, 900)}
# names that would be markup if the page took them for it
NASTY = "</script><img src=x onerror=alert(1)> \"quotes\" & 'more'"


class Browser:
    """Chromium over its DevTools pipe: JSON, each message ended by a zero byte, on file descriptors 3 and 4."""

    def __init__(self, chromium, folder):
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def descriptors():  # in the browser's process, before it starts
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3), os.dup2(second, 4)

        self.process = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        atexit.register(self.process.kill)  # whatever ends this program
        self.last, self.rest, self.events = 0, b"", []
        target = next(t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]

    session = None

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 16)
            if not more:
                sys.exit("browser: the browser ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") == "Page.javascriptDialogOpening":
            sys.exit("browser: a name was taken for markup, and ran: " + message["params"]["message"])
        return message

    def __call__(self, method, **parameters):
        self.last += 1
        asked = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.write, json.dumps(asked).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.last:
                if "error" in got:
                    sys.exit(f"browser: {method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.message())

    def ask(self, expression):
        result = self("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"browser: {expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def end(self):
        self("Browser.close")
        self.process.wait(30)


def open_page(browser, path, size, scheme):
    wide, high = SIZES[size]
    browser("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=2 if size == "phone" else 1, mobile=size == "phone")
    browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events = []
    browser("Page.navigate", url=path.as_uri())
    browser.wait("Page.loadEventFired")


def faults_of(browser):
    """What the page did that it must not: errors, warnings, and requests of anything but itself."""
    said = []
    for event in browser.events:
        parameters = event.get("params", {})
        if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            said.append(json.dumps(parameters)[:500])
        if event.get("method") == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith("file:///"):
            said.append("fetches " + parameters["request"]["url"])
    return said


def check(what, got, wanted):
    wrong = {k: (got[k], v) for k, v in wanted.items() if got[k] != v}
    for key, (is_, should) in wrong.items():
        print(f"{what}: {key} is {is_}, expected {should}")
    return len(wrong)

"""double.py 1.0: the test double of events, for your tests. Copy this file. It needs only Python's standard
library, works in unittest, pytest and pytest-xdist, and uses no proxy.

Its methods block. In async tests, use threads: await asyncio.to_thread(double.requests, user, count=2)"""

import datetime
import http.client
import json
import os
import re
import subprocess
import urllib.parse


class Double:
    def __init__(self, own=False):
        """Connects to the double of "eventsd double -- pytest". Without it, or with own=True, starts one with
        the program in EVENTSD, or eventsd."""
        self._process = None
        self.control_url = os.environ.get("EVENTS_CONTROL_URL")
        base_url = os.environ.get("EVENTS_BASE_URL")
        if own or not self.control_url:
            self.control_url, base_url = self._start(own), None
        elif not self.control_url.lower().startswith("http://"):
            raise RuntimeError(f"EVENTS_CONTROL_URL is {self.control_url}: it must begin with http://")
        self.base_url = base_url or self.control_url.replace("/_control", "/api/public/v1")

    def _start(self, own):
        program = os.environ.get("EVENTSD")
        command = [program or "eventsd", "double", "-addr", "127.0.0.1:0", "-until-eof"]
        problem = "it ended at once; see stderr"
        try:
            # The double ends with its stdin, so at the latest with this process.
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            for line in self._process.stdout:
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "control_url":
                    url = value
                if name == "ready":
                    return url
        except OSError as error:
            problem = error
        self.stop()
        raise RuntimeError(
            f"cannot start a test double: EVENTSD is {program or 'missing'}: {problem}: set EVENTSD to the "
            'program that "go build -o eventsd ./cmd/eventsd" builds in a clone of events'
            + ("" if own else ', or EVENTS_CONTROL_URL to a double, as "eventsd double -- pytest" does')
        )

    def stop(self):
        """Ends the double, but not that of "eventsd double --", which other tests need."""
        if self._process:
            self._process.communicate()  # closes stdin and waits

    def control(self, method, path, body=None, **query):
        """Sends a request to the control API and returns the value of the response. Leaves out None."""
        query = {name: value for name, value in query.items() if value is not None}
        url = urllib.parse.urlsplit(self.control_url)
        connection = http.client.HTTPConnection(url.netloc, timeout=70)
        try:
            target = url.path + path + ("?" + urllib.parse.urlencode(query) if query else "")
            connection.request(method, target, None if body is None else json.dumps(body))
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeError(f"no response from the double at {self.control_url}: {error}") from None
        finally:
            connection.close()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {text}")
        return json.loads(text or "null")

    def reset(self):
        """Removes everything, also the users of running tests."""
        self.control("POST", "/reset")

    def new_key(self, name):
        """Creates a user with a key: {id, secret, user_id, base_url}. Give each test its own."""
        return self.control("POST", "/keys", {"name": name})

    def issue_key(self, user):
        """Creates another key of a user."""
        return self.control("POST", "/keys", {"user_id": user})

    def keys(self):
        return self.control("GET", "/keys")["data"]

    def records(self):
        """Returns everything that is stored: [{"user": {…}}, {"key": {…}}, {"event": {…}}, …]."""
        return self.control("GET", "/records")

    def apply(self, records):
        return self.control("POST", "/records", records)

    def count_events(self, user):
        return sum(1 for record in self.records() if record.get("event", {}).get("host_id") == user)

    def fail(self, user, fault):
        """Adds a fault for a user's requests, or for all if user is None."""
        if user == "":
            raise RuntimeError("fail: user is missing: pass its ID, or None for all users")
        return self.control("POST", "/faults", {**fault, "user_id": user})

    def faults(self):
        return self.control("GET", "/faults")["data"]

    def set_faults(self, faults):
        return self.control("PUT", "/faults", faults)["data"]

    def clear_fault(self, fault_id):
        self.control("DELETE", "/faults/" + fault_id)

    def clear_faults(self):
        self.control("DELETE", "/faults")

    def requests(self, user=None, operation=None, after=None, count=None, wait=None):
        """Returns a user's requests, or all without a user, oldest first. With a count, waits until so many
        have arrived, by default at most "5s", and raises an AssertionError if they haven't."""
        wait = wait or count and "5s"
        query = {"user_id": user, "operation": operation, "after": after, "count": count, "wait": wait}
        found = self.control("GET", "/requests", **query)
        requests = found["data"]
        if found["timed_out"]:
            raise AssertionError(f"{len(requests)} of {count} requests arrived in {wait}{_lines(requests)}")
        return requests

    def clear_requests(self):
        self.control("DELETE", "/requests")

    def problems(self, user=None):
        """Returns a user's problems, or all without a user: [{kind, text, user_id}]."""
        return self.control("GET", "/problems", user_id=user)["data"]

    def verify(self, user=None):
        """Raises an AssertionError if a user has problems. Call it after each test."""
        problems = [problem["text"] for problem in self.problems(user)]
        if problems:
            newest = self.requests(user)[-20:]
            raise AssertionError("\n".join(problems) + "\nnewest requests:" + (_lines(newest) or " none"))

    def now(self):
        return self.control("GET", "/clock")["now"]

    def set_clock(self, now):
        return self.control("PUT", "/clock", {"now": now})["now"]

    def advance(self, by):
        """Moves the clock forward, such as by "1h". All users share it, so a test that moves it needs its own
        double."""
        return self.control("POST", "/clock/advance", {"by": by})["now"]


def check_idempotency_keys(requests):
    """Raises an AssertionError unless all requests have the same Idempotency-Key."""
    keys = [_idempotency_key(request) for request in requests]
    if len(set(keys)) != 1 or keys[0] == "no Idempotency-Key":
        raise AssertionError("want the same Idempotency-Key in all requests, got: " + ", ".join(keys))


def _idempotency_key(request):
    key = request["header"].get("Idempotency-Key")
    return f"Idempotency-Key {key[0]}" if key else "no Idempotency-Key"


def _lines(requests):
    """Returns requests as lines of text, with the time since the request before. Leaves out unencoded API
    keys."""
    text, previous = "", None
    for r in requests:
        whole, _, fraction = r["received"].rstrip("Z").partition(".")
        received = datetime.datetime.fromisoformat(whole).timestamp() + float("0." + (fraction or "0"))
        wait = f"+{max(0, received - previous):.1f}s " if previous else ""
        previous = received
        query = "?" + r["query"] if r["query"] else ""
        key = ", " + _idempotency_key(r) if r["operation"] == "POST /events/create" else ""
        text += f"\n{r['seq']}: {wait}{r['method']} {r['path']}{query}{key}: {r['status']}"
        retry_after = (r["response_header"] or {}).get("Retry-After")
        if retry_after:
            text += f", Retry-After {retry_after[0]}"
        if r["fault"]:
            text += f" ({r['fault']})"
        elif r["status"] >= 400:
            text += ": " + r["response"][:200]
    return re.sub(r"svc_live_[\w.~-]+", "svc_live_…", text)

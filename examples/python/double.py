"""The test double for your tests: copy this file. Under "eventsd double -- python3 -m unittest", it
finds the double in the environment. Otherwise it starts one: the program $EVENTSD, or eventsd."""

import datetime
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request


class Double:
    def __init__(self):
        self.process = None
        if "EVENTS_CONTROL_URL" in os.environ:
            self.base_url = os.environ["EVENTS_BASE_URL"]
            self.control_url = os.environ["EVENTS_CONTROL_URL"]
            return
        # The double ends when its stdin ends: in stop, or with this process.
        command = [os.environ.get("EVENTSD") or "eventsd", "double", "-until-eof"]
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise RuntimeError(
                f"cannot start the test double: {error}: build it in a checkout of events with "
                '"go build -o eventsd ./cmd/eventsd" and set EVENTSD to its path'
            ) from None
        lines = {}
        for line in self.process.stdout:
            name, _, value = line.rstrip("\n").partition(": ")
            lines[name] = value
            if name == "ready":  # the double listens
                break
        else:
            self.stop()
            raise RuntimeError("eventsd failed to start; see stderr")
        self.base_url = lines["base_url"]
        self.control_url = lines["control_url"]

    def stop(self):
        if self.process:
            self.process.communicate()  # closes stdin and waits

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            self.control_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def new_key(self, name):
        """Creates a user with a key: {id, secret, user_id, base_url}. Give each test its own."""
        return self.control("POST", "/keys", {"name": name})

    def fail(self, user, fault):
        """Adds a fault for a user's requests."""
        return self.control("POST", "/faults", {**fault, "user_id": user})

    def requests(self, user):
        """Returns a user's requests, oldest first."""
        return self.control("GET", "/requests?user_id=" + user)["data"]

    def tries(self, user, operation, count=0):
        """Waits for count requests of a user for an operation, and raises an error after 5 seconds. Returns
        the status, fault and Idempotency-Key ("key") of each request, and the seconds since the request
        before ("after")."""
        query = {"user_id": user, "operation": operation, "count": count, "wait": "5s"}
        found = self.control("GET", "/requests?" + urllib.parse.urlencode(query))
        if found["timed_out"]:
            raise AssertionError(f"{len(found['data'])} of {count} requests for {operation}: {found['data']}")
        tries, before = [], None
        for request in found["data"]:
            received = _seconds(request["received"])
            tries.append({
                "status": request["status"],
                "fault": request["fault"],
                "key": request["header"].get("Idempotency-Key", [None])[0],
                "after": received - (before or received),
            })
            before = received
        return tries

    def count_events(self, user):
        """Returns the number of a user's events."""
        events = [record.get("event") for record in self.control("GET", "/records")]
        return sum(1 for event in events if event and event["host_id"] == user)


def same_key(tries):
    """Reports whether all attempts had the same Idempotency-Key."""
    return all(t["key"] and t["key"] == tries[0]["key"] for t in tries)


def _seconds(instant):
    """Returns 2030-01-01T00:00:00.123456789Z in seconds. Python's parser reads at most six digits."""
    whole, _, fraction = instant.rstrip("Z").partition(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + (fraction or "0"))

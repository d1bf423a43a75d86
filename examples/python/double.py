"""Starts the test double and steers it: copy this file. It runs the program
that EVENTSD names, else eventsd from the PATH. Build it, never spawn "go run":
that would leave the server running."""

import json
import os
import subprocess
import urllib.request


class Double:
    def __init__(self, *args):
        self.process = subprocess.Popen(
            [os.environ.get("EVENTSD", "eventsd"), "double", *args], stdout=subprocess.PIPE, text=True
        )
        lines = {}
        for line in self.process.stdout:
            name, _, value = line.rstrip("\n").partition(": ")
            lines[name] = value
            if name == "ready":  # it listens by now
                break
        else:
            self.stop()
            raise RuntimeError("eventsd ended before it was ready; it said why on stderr")
        self.base_url, self.key = lines["base_url"], lines["api_key"]
        self._url, self._token = lines["control_url"], lines["control_token"]

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer " + self._token},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read() or "null")

    def new_key(self, name):
        """A key is a tenant: with one each, tests do not meet. {id, key, user}"""
        return self.control("POST", "/keys", {"name": name})

    def faults(self, user, *faults):
        """Replaces the faults of a user."""
        return self.control("PUT", "/faults?user=" + user, list(faults))

    def requests(self, user):
        """What a user called, oldest first."""
        return self.control("GET", "/requests?user=" + user)["data"]

    def reset(self, user):
        self.control("POST", "/reset?user=" + user)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

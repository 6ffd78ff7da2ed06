"""A client of MCTP 0.1, written from the protocol's document alone.

It discovers the tasks of a service, submits one, asks for its status by HEAD until it is over, and
fetches the result. Standard library only.

    python3 client.py BASE_URL TASK PARAMETERS
"""

import json
import sys
import time
import urllib.request
from datetime import datetime
from uuid import UUID

STATUSES = {"pending", "in_progress", "completed", "failed"}


def call(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.headers, response.read()


def check_task(task):
    UUID(task["id"])
    datetime.fromisoformat(task["createdAt"].replace("Z", "+00:00"))
    assert task["status"] in STATUSES, task
    return task


def main(base, name, parameters):
    _, body = call("GET", base + "/discovery")
    endpoint = json.loads(body)["endpoints"][name]
    _, body = call("POST", endpoint, {"parameters": parameters})
    task = check_task(json.loads(body))
    polls, seen = 0, [task["status"]]
    while True:
        headers, body = call("HEAD", endpoint + "/" + task["id"])
        assert body == b"", body
        status, polls = headers["X-Task-Status"], polls + 1
        assert status in STATUSES, status
        if status != seen[-1]:
            seen.append(status)
        if status in ("completed", "failed"):
            break
        time.sleep(0.1)
    _, body = call("GET", endpoint + "/" + task["id"] + "/result")
    answer = json.loads(body)
    assert check_task(answer["task"])["id"] == task["id"], answer
    assert answer["task"]["status"] == status, answer
    json.dump({"seen": seen, "polls": polls, "status": status, "result": answer["result"]}, sys.stdout)


main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))

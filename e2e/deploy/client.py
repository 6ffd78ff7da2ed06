"""The client of FastMCP, with its tasks, led by a test.

It is started with the URL of a server and a key. Each line that it reads says what to do, each that it
writes what came of it. While a call is under way it may write a question; the next line that it reads
is the answer.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from fastmcp_tasks import ToolTask
from fastmcp_tasks.client_models import CancelTaskRequest, ClientCreateTaskResult, GetTaskRequest, UpdateTaskRequest
from mcp import MCPError

# The extension has these name their task in the header Mcp-Name; FastMCP's requests forget to tell the SDK.
for request in (CancelTaskRequest, GetTaskRequest, UpdateTaskRequest):
    request.name_param = "taskId"


def say(**what):
    print(json.dumps(what), flush=True)


async def hear():
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


async def elicit(message, response_type, params, context):
    say(asked=message, request=str(context.request_id))
    answer = await hear()
    return ElicitResult(action=answer["action"], content=answer.get("content"))


async def do(client, what, tool=None, arguments=None, task=None):
    def known():
        when = "1970-01-01T00:00:00Z"  # which the handle does not use
        return ToolTask(client, "", ClientCreateTaskResult(
            resultType="task", taskId=task, status="working", createdAt=when, lastUpdatedAt=when))

    match what:
        case "list":
            return {"tools": [t.name for t in await client.list_tools()]}
        case "call":
            return {"result": (await client.call_tool(tool, arguments)).structured_content}
        case "status":
            return {"status": (await known().status()).status}
        case "cancel":
            await known().cancel()
            return {}


async def main(url, key):
    transport = StreamableHttpTransport(url, headers={"Authorization": "Bearer " + key})
    async with Client(transport, elicitation_handler=elicit) as client:
        while wanted := await hear():
            try:
                say(**await do(client, **wanted))
            except (ToolError, MCPError) as e:
                say(error=str(e))


asyncio.run(main(*sys.argv[1:]))

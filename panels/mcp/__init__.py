"""MCP: the bench as four tools for agents, over streamable HTTP at /mcp and /v1/mcp, in both of the protocol's generations.

The official SDK reads, checks and writes the protocol's messages (`server`, the only module that imports it); what is HTTP is ours (`view`,
`channel`), since the SDK's own transport keeps sessions in one process. A panel asked for here goes down `panels.serve` like any other.
"""

"""HTTP and MCP: validation and presentation; the only home of pydantic and of prose for agents."""

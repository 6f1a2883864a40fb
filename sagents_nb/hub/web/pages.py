"""The page at the address of a hub."""

from __future__ import annotations

POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
}

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>sagents_nb hub</title>
</head>
<body>
<main>
<h1>sagents_nb hub</h1>
<p>Agents are served here. Every route is in <code>/openapi.json</code>, which, as all others, needs
the token that the hub printed when it began:</p>
<pre>curl -H "Authorization: Bearer $TOKEN" http://localhost:8765/agencies</pre>
</main>
</body>
</html>
"""

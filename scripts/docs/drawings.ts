/** Drawings of the documentation: `docs/drawings/NAME.dot` becomes `NAME.svg`, readable on light and dark pages. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

interface Viz {
  readonly renderString: (dot: string, options: Readonly<Record<string, unknown>>) => string;
}

/** Attributes of every drawing. Boxes are measured for Arial at 13; readers see their own font, which may be wider, at 12. */
const GRAPH = { bgcolor: 'white', fontname: 'Arial', fontsize: 13, pad: 0.2, style: 'rounded' };
const NODE = { fontname: 'Arial', fontsize: 13, margin: '0.16,0.1' };
const EDGE = { fontname: 'Arial', fontsize: 12, arrowsize: 0.7 };

/** The drawing has a background of its own, because a page may be light where the reader's system is dark. */
const STYLE = `
text { font-family: system-ui, sans-serif; fill: #1f2328 }
.graph > polygon { fill: #ffffff; stroke: none }
.cluster path { fill: #f6f8fa; stroke: #d0d7de }
.cluster text, .edge text { font-size: 11px; fill: #57606a }
.edge path { stroke: #57606a }
.edge polygon { fill: #57606a; stroke: #57606a }
.node text { font-size: 12px }
.node text:first-of-type { font-weight: 600 }
.node path { fill: #ffffff; stroke: #8c959f }
.yours path { fill: #ddf4ff; stroke: #0969da }
.file path, .step path { fill: #fff8c5; stroke: #9a6700 }
.machine path, .hook path { fill: #dafbe1; stroke: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.graph > polygon { fill: #0d1117 }
.cluster path { fill: #161b22; stroke: #30363d }
.cluster text, .edge text { fill: #9da7b3 }
.edge path { stroke: #9da7b3 }
.edge polygon { fill: #9da7b3; stroke: #9da7b3 }
.node path { fill: #161b22; stroke: #8b949e }
.yours path { fill: #0c2d6b; stroke: #58a6ff }
.file path, .step path { fill: #3d2b00; stroke: #d29922 }
.machine path, .hook path { fill: #04260f; stroke: #3fb950 }
}
`;

/** Draws texts in the language of Graphviz, by the tool `site` of scripts/tools; the same text always gives the same SVG. */
export async function drawing(checkout: string): Promise<(dot: string) => string> {
  const load = createRequire(join(checkout, '.curlew/tools/site/package.json'));
  const viz = await (load('@viz-js/viz') as { readonly instance: () => Promise<Viz> }).instance();
  return (dot) => {
    const svg = viz.renderString(dot, {
      format: 'svg',
      graphAttributes: GRAPH,
      nodeAttributes: NODE,
      edgeAttributes: EDGE,
    });
    return svg
      .slice(svg.indexOf('<svg'))
      .replaceAll(/<!--.*?-->\n/gs, '')
      .replaceAll(/<title>.*?<\/title>\n/g, '')
      .replaceAll(/ font-family="[^"]*"/g, '')
      .replace(/>\n/, `>\n<style>${STYLE}</style>\n`);
  };
}

/** The picture of a terminal: the first block of docs/addons.md, as its commands print it there. */
import { execa } from 'execa';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Wide enough for every line, also with the path of a temporary folder, which is not shown. */
const COLUMNS = 120;
const LINE = 19;
const PADDING = 16;
/** Width of a character of most monospace fonts at 13 px, which is at most this. */
const CHARACTER = 7.9;

// eslint-disable-next-line no-control-regex
const COLOR = /\u001b\[\d+m/g;

const STYLE = `
rect { fill: #161b22; stroke: #30363d }
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre }
.c1, .command { font-weight: 600 }
.c2 { fill: #8b949e }
.c31 { fill: #ff7b72 }
.c32 { fill: #3fb950 }
.c33 { fill: #d29922 }
.c36 { fill: #76e3ea }
`;

/** The lines that a terminal shows after this output, with the sequences of their colors; as far as curlew moves its cursor. */
export function shownLines(output: string): readonly string[] {
  const lines: string[] = [''];
  let row = 0;
  // eslint-disable-next-line no-control-regex
  for (const [piece] of output.matchAll(/\u001b\[\??[\d;]*[A-Za-z]|\n|\r|[^\u001b\n\r]+/g)) {
    if (piece === '\n') row += 1;
    else if (piece === '\u001b[1A') row -= 1;
    else if (piece === '\u001b[2K') lines[row] = '';
    else if (piece.endsWith('m') || !/^[\u001b\r]/.test(piece)) lines[row] = (lines[row] ?? '') + piece;
    lines[row] ??= '';
  }
  return lines.join('\n').trimEnd().split('\n');
}

/** The lines of a picture without what differs from one run to the next: sizes, times, which slow commands end with, and runs. */
export function comparable(svg: string): string {
  const lines = [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = '']) => line);
  return lines
    .filter((line) => !/<\/tspan>\w+ in [\d.]+ \w+$/.test(line))
    .join('\n')
    .replaceAll(/\brun \d{8}T\S+/g, 'run')
    .replaceAll(/\d+(?:\.\d+)?(?: [kM]?B| s| min)\b/g, 'N');
}

/** An SVG of lines as {@link shownLines} returns them; those that begin with `$ ` are commands. */
export function terminalSvg(lines: readonly string[]): string {
  const columns = Math.max(...lines.map((line) => line.replaceAll(COLOR, '').length));
  const [width, height] = [Math.ceil(columns * CHARACTER) + 2 * PADDING, lines.length * LINE + 2 * PADDING];
  const rows = lines.map((line, at) => {
    const y = PADDING + (at + 0.75) * LINE;
    return `<text x="${PADDING}" y="${y}"${line.startsWith('$ ') ? ' class="command"' : ''}>${spansOf(line)}</text>\n`;
  });
  const size = `width="${width}" height="${height}"`;
  return `<svg ${size} viewBox="0 0 ${width} ${height}" xmlns="http://www.w3.org/2000/svg">
<style>${STYLE}</style>
<rect ${size} rx="8"/>
${rows.join('')}</svg>
`;
}

function spansOf(line: string): string {
  const text = line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const [first = '', ...colored] = text.split(COLOR);
  const codes = [...text.matchAll(COLOR)].map(([code]) => code.slice(2, -1));
  return colored.reduce((all, rest, at) => {
    const color = codes[at] ?? '';
    const isReset = color === '0' || color === '22' || color === '39';
    return all + (isReset || rest === '' ? rest : `<tspan class="c${color}">${rest}</tspan>`);
  }, first);
}

/** Runs the block of the page on a terminal, in an empty folder, and draws it. Needs root, for the sandbox. */
export async function drawTerminal(checkout: string, main: string): Promise<string> {
  const page = await readFile(join(checkout, 'docs/addons.md'), 'utf8');
  const [, block = ''] = /^```sh\n([^]*?)^```/m.exec(page) ?? [];
  const home = await mkdtemp(join(tmpdir(), 'curlew-terminal-'));
  try {
    await mkdir(join(home, 'bin'));
    await writeFile(join(home, 'bin/curlew'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
    await chmod(join(home, 'bin/curlew'), 0o755);
    const env = { HOME: home, PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`, TERM: 'xterm-256color' };
    await mkdir(join(home, 'work'));
    // Only these variables: a machine without colors, or a CI, draws the same picture.
    const options = { cwd: join(home, 'work'), env, extendEnv: false, stdin: 'ignore' } as const;
    let shown = '';
    // The lines between the commands write files.
    for (const part of block.split(/^(?=curlew )|(?<=^curlew .*\n)/m)) {
      if (!part.startsWith('curlew ')) await execa('bash', ['-euc', part], options);
      else {
        const command = part.replace(/ +#.*/, '').trim();
        const { stdout } = await execa(
          'script',
          ['-qefc', `stty cols ${COLUMNS} rows 40; ${command}`, '/dev/null'],
          options,
        );
        shown += `$ ${command}\n${shownLines(stdout).join('\n')}\n`;
      }
    }
    return terminalSvg(shown.replaceAll(join(home, 'work'), '~').trimEnd().split('\n'));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

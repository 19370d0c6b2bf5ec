/** What each hook pays for the functions that it may call, and rendering beside kURL's own way of it. */
import { execa } from 'execa';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../components/support/programs.ts';
import type { Options } from './images.ts';
import { pairwise, spread } from './measure.ts';
import { range, type Section } from './report.ts';

const FILES = 100;
const SOURCE = 'for file in "$1"/*.sh; do source "$file"; done';

/** kURL's two ways (kurl.md 7.6): the text within an `echo "…"`, and the text as a here-document. */
const THEIRS = `
theirs() { eval "echo \\"$(cat "$1")\\""; }
theirs_2() {
  if [ ! -f "$1" ]; then return 1; fi
  eval "cat <<END_OF_THE_FILE
$(cat "$1")
END_OF_THE_FILE
"
}`;

/** Looks like the templates of add-ons: about two kilobytes, a few variables and calls. */
function template(at: number): string {
  const rows = Array.from(
    { length: 40 },
    (_, row) => `    key-${row}: "value ${row} of \${DEMO_NAME}"\n    other-${row}: $DEMO_VERSION\n`,
  );
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: demo-${at}\n  namespace: \${DEMO_NAMESPACE}\ndata:\n${rows.join('')}`;
}

/** Milliseconds that the second line takes in a new bash, after the first one. */
async function timed(before: string, line: string, values: readonly string[]): Promise<number> {
  const script = `exec 3>&1 >/dev/null\n${before}\nstart=$EPOCHREALTIME\n${line}\nend=$EPOCHREALTIME\necho "$start $end" >&3`;
  const { stdout } = await execa('bash', ['-c', script, 'bash', ...values], { stdin: 'ignore', stderr: 'inherit' });
  const [start = Number.NaN, end = Number.NaN] = stdout.split(' ').map(Number);
  return (end - start) * 1000;
}

export async function benchLibrary({ rounds, say }: Options): Promise<Section> {
  const library = join(ROOT, 'scripts/lib');
  const folder = await mkdtemp(join(tmpdir(), 'curlew-bench-library-'));
  for (let at = 0; at < FILES; at += 1) await writeFile(join(folder, `${at}.yaml`), template(at));
  const settings = `${SOURCE}\n${THEIRS}\nDEMO_NAME=demo DEMO_VERSION=1.2.3 DEMO_NAMESPACE=default`;
  const render = async (name: string): Promise<number> =>
    timed(settings, `for file in "$2"/*.yaml; do ${name} "$file"; done`, [library, folder]);
  const found = { source: [], theirs: [], ours: [], theirs2: [], ours2: [] } as Record<
    'source' | 'theirs' | 'ours' | 'theirs2' | 'ours2',
    number[]
  >;
  for (let round = 0; round < rounds * 4; round += 1) {
    found.source.push(await timed('', SOURCE, [library]));
    found.theirs.push(await render('theirs'));
    found.ours.push(await render('render_yaml_file'));
    found.theirs2.push(await render('theirs_2'));
    found.ours2.push(await render('render_yaml_file_2'));
  }
  say('library measured');
  await rm(folder, { recursive: true });
  const source = spread(found.source);
  const [first, second] = [pairwise(found.ours, found.theirs), pairwise(found.ours2, found.theirs2)];
  return {
    title: 'Functions for hooks',
    about: `The whole of scripts/lib in a new bash, and ${FILES} rendered files of two kilobytes.`,
    table: [
      ['what', 'milliseconds'],
      ['sourcing the library', range(source)],
      ["kURL's echo", range(spread(found.theirs))],
      ['render_yaml_file', range(spread(found.ours))],
      ["kURL's here-document", range(spread(found.theirs2))],
      ['render_yaml_file_2', range(spread(found.ours2))],
    ],
    targets: [
      { name: 'sourcing the library', wanted: '≤ 15 ms', measured: `${range(source)} ms`, met: source.median <= 15 },
      { name: "render_yaml_file ÷ kURL's", wanted: '≤ 1', measured: range(first), met: first.median <= 1 },
      { name: "render_yaml_file_2 ÷ kURL's", wanted: '≤ 1', measured: range(second), met: second.median <= 1 },
    ],
  };
}

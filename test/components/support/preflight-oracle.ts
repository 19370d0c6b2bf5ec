/** Troubleshoot's own `preflight` beside ours, both in one view of this machine that is thrown away afterwards. */
import { execa } from 'execa';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MAIN } from '../../support/compiled.ts';
import { tree, type Files } from '../../support/tree.ts';
import * as assert from '../../support/assert.ts';
import { specText } from '../../support/preflight.ts';
import type { Suite } from '../../support/suite.ts';
import { cannotRun, oracle } from './programs.ts';

export interface World {
  /** Files below /etc and /usr/lib that this machine seems to have, by absolute path. */
  readonly files?: Files;
  /** Files below /etc that it seems not to have. */
  readonly without?: readonly string[];
  /** Programs that come before the machine's own. */
  readonly programs?: Files;
  /** It seems to have no network. */
  readonly offline?: boolean;
}

export interface Verdicts {
  /** `warn Title`, sorted. */
  readonly theirs: readonly string[];
  readonly ours: readonly string[];
  /** What was said beside the results, for failures of the test. */
  readonly said: string;
}

const VIEW = `
for folder in etc usr/lib; do
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$WORLD/$folder,workdir=$WORLD/work-\${folder%%/*}" "/$folder"
done
for file in $WITHOUT; do rm -f "$file"; done
ip link set lo up 2>/dev/null || true
cd "$WORLD/cwd"
"$ORACLE" --interactive=false --format=json "$SPEC" >"$WORLD/theirs" 2>"$WORLD/theirs.log" || true
node "$MAIN" preflight --json "$SPEC" >"$WORLD/ours" 2>"$WORLD/ours.log" || true
cat "$WORLD/theirs"; echo '=====';  cat "$WORLD/ours"; echo '====='; cat "$WORLD/theirs.log" "$WORLD/ours.log"
`;

let specs = 0;

/** Runs one spec through both. */
async function verdictsOf(spec: string, world: World = {}): Promise<Verdicts> {
  specs += 1;
  await using box = await tree({ 'spec.yaml': spec, 'cwd/x': '', 'etc/.keep': '', 'usr/lib/.keep': '' });
  for (const name of ['work-etc', 'work-usr', 'bin']) await mkdir(box.at(name));
  for (const [path, text] of Object.entries(world.files ?? {})) {
    await mkdir(dirname(join(box.path, path)), { recursive: true });
    await writeFile(join(box.path, path), text);
  }
  for (const [name, text] of Object.entries(world.programs ?? {})) {
    await writeFile(box.at('bin', name), text);
    await chmod(box.at('bin', name), 0o755);
  }
  const env = {
    PATH: `${box.at('bin')}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    WORLD: box.path,
    SPEC: box.at('spec.yaml'),
    WITHOUT: (world.without ?? []).join(' '),
    ORACLE: oracle('preflight'),
    HOME: box.path,
    MAIN,
  };
  const apart = ['--mount', ...(world.offline === true ? ['--net'] : [])];
  const { stdout } = await execa('unshare', [...apart, 'bash', '-eu', '-c', VIEW], { env, extendEnv: false });
  const [theirs = '', ours = '', said = ''] = stdout.split(/^=====$/m);
  return { theirs: theirVerdicts(theirs), ours: ourVerdicts(ours), said };
}

type Titled = readonly { readonly title: string }[];

/** A spec without any result is an error to them, and nothing is printed. */
function theirVerdicts(text: string): readonly string[] {
  const start = text.indexOf('{');
  const found = (start === -1 ? {} : JSON.parse(text.slice(start))) as Readonly<Record<string, Titled>>;
  return Object.entries(found)
    .flatMap(([verdict, results]) => results.map(({ title }) => `${verdict} ${title}`.trim()))
    .toSorted();
}

function ourVerdicts(text: string): readonly string[] {
  const found = JSON.parse(text) as {
    readonly results?: readonly { readonly verdict: string; readonly title: string }[];
  };
  return (found.results ?? []).map(({ verdict, title }) => `${verdict} ${title}`).toSorted();
}

/** Both must come to the same verdicts. */
export async function same(spec: string, world: World = {}): Promise<void> {
  const { theirs, ours, said } = await verdictsOf(spec, world);
  assert.equal(ours, theirs, `${spec}\n${said}`);
}

/** What docs/preflights.md lists as different: both sides are pinned. */
export async function differs(
  spec: string,
  theirs: readonly string[],
  ours: readonly string[],
  world: World = {},
): Promise<void> {
  const found = await verdictsOf(spec, world);
  assert.equal([found.theirs, found.ours], [theirs, ours], `${spec}\n${found.said}`);
}

/** One collector, one analyzer: a warning where the condition holds, else it passes. */
export function asking(kind: string, when: string, settings = '', analyzer = ''): string {
  return specText(`  collectors:
    - ${kind}: {${settings}}
  analyzers:
    - ${kind}:
${analyzer}        outcomes:
          - warn: {when: ${JSON.stringify(when)}, message: holds}
          - pass: {message: else}
`);
}

export async function each(
  kind: string,
  conditions: readonly string[],
  settings = '',
  world: World = {},
): Promise<void> {
  for (const when of conditions) await same(asking(kind, when, settings), world);
}

/** A program that prints this text. */
export function prints(text: string): string {
  return `#!/bin/sh\ncat <<'END'\n${text}\nEND\n`;
}

type Compare = (name: string, body: () => Promise<void>, ...programs: readonly string[]) => void;

/** A test of a suite, or why it cannot run: for lack of what all of them need, or of programs of its own. */
export function comparisons(test: Suite): Compare {
  return (name, body, ...programs) => {
    const reason = cannotRun('unshare', 'lsblk', 'sysctl', oracle('preflight'), ...programs);
    if (reason === undefined) test(name, body);
    else test.skip(name, reason);
  };
}

/** So that no suite compares ever less without anybody noticing. */
const MIN_SPECS = 60;

/** The last test of a suite: how many specs were compared. */
export function countComparisons(compare: Compare): void {
  compare(`at least ${MIN_SPECS} specs were compared`, async () => {
    console.log(`${specs} specs compared`);
    assert.ok(specs >= MIN_SPECS, `${specs} specs`);
    return Promise.resolve();
  });
}

export const UBUNTU: World = {
  files: {
    '/etc/os-release': 'ID=ubuntu\nVERSION_ID="22.04"\n',
    '/etc/lsb-release': 'DISTRIB_ID=Ubuntu\nDISTRIB_RELEASE=22.04\n',
    '/etc/debian_version': 'bookworm/sid\n',
  },
};

function redHat(id: string, version: string, file: string, text: string): World {
  const files = { '/etc/os-release': `ID="${id}"\nVERSION_ID="${version}"\n`, [`/etc/${file}`]: `${text}\n` };
  return { files, without: ['/etc/debian_version', '/etc/lsb-release'] };
}

export const WORLDS: readonly (readonly [string, World])[] = [
  ['Debian', {}],
  ['Ubuntu', UBUNTU],
  ['CentOS', redHat('centos', '7', 'redhat-release', 'CentOS Linux release 7.9.2009 (Core)')],
  ['Rocky', redHat('rocky', '9.3', 'redhat-release', 'Rocky Linux release 9.3 (Blue Onyx)')],
  ['Red Hat', redHat('rhel', '8.9', 'redhat-release', 'Red Hat Enterprise Linux release 8.9 (Ootpa)')],
  ['Amazon', redHat('amzn', '2023', 'system-release', 'Amazon Linux release 2023.5.20240805 (Amazon Linux)')],
];

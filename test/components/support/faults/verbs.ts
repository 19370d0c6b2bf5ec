/** The commands that are tried with faults, over the smallest folders in which they do all that they can do. */
import type { Files } from '../../../support/tree.ts';
import type { Settle } from './states.ts';
import type { Verb } from './trial.ts';

const ADDON: Files = {
  'addons/aaa/1.0.0/Manifest': 'asset data.txt ./data\n',
  'addons/aaa/1.0.0/install.sh': '# shellcheck shell=bash\naaa() { true; }\n',
  'addons/aaa/1.0.0/data': 'some data\n',
  'addons/aaa/1.0.0/deploy/x.yaml': 'x: 1\n',
  'installer.yaml':
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: faults}\nspec: {aaa: {version: latest}}\n',
};

/** Another content of the add-on. */
function changed(content: string): Files {
  return { 'addons/aaa/1.0.0/data': `${content}\n` };
}

function publishing(release: string): readonly string[] {
  return ['publish', '--to', 'store', '--release', release];
}

function bundling(output: string): readonly string[] {
  return ['bundle', 'installer.yaml', '--from', 'store', '-o', output];
}

/** What a folder store notes about a file tells itself whether it is whole. */
const NOTES = /\/\.curlew\/notes\//;

/** Times differ from run to run, and with them the digests of what has them. */
const withoutTimes: Settle = (path, text) => {
  const plain = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  return /\/notes\/.*(?:index|-gen)\.json\//.test(path) ? plain.replaceAll(/[0-9a-f]{64}/g, 'DIGEST') : plain;
};

/** So do signatures and keys; what counts is that they are whole. */
const whenWhole: Settle = (path, text) => {
  if (path.endsWith('.sigstore.json')) return Object.keys(JSON.parse(text) as object).join(' ');
  // DER begins with the length of what follows.
  if (path.endsWith('.sig')) return text.charCodeAt(1) === text.length - 2 ? 'a signature' : text;
  if (/\.(?:key|pub)$/.test(path)) return text.replace(/^(-+BEGIN .*-+\n)[A-Za-z0-9+/=\n]+(\n-+END .*-+\n)$/, '$1$2');
  return withoutTimes(path, text);
};

export const VERBS: readonly Verb[] = [
  {
    title: 'build',
    files: ADDON,
    words: ['build', '--cache', 'cache'],
    always: [{ kind: 'EROFS+', at: 'mkdir cache/unfinished#1' }],
  },
  {
    title: 'publish',
    files: ADDON,
    before: [publishing('v1'), changed('more data')],
    words: publishing('v2'),
    settle: withoutTimes,
    between: NOTES,
    always: [{ kind: 'ENOSPC+', at: 'mkdir store/v2#1' }],
  },
  {
    title: 'bundle',
    files: ADDON,
    before: [publishing('v1')],
    words: bundling('b.tar.gz'),
    always: [
      { kind: 'EIO', at: 'stat .#1' },
      { kind: 'EIO', at: 'stat store/v1/aaa-1.0.0.tar.gz#3' },
    ],
    isOnce: true,
    isClean: true,
  },
  {
    title: 'apply',
    files: ADDON,
    before: [
      publishing('v1'),
      bundling('b1.tar.gz'),
      changed('more data'),
      publishing('v2'),
      ['inventory', 'b1.tar.gz', '-o', 'inventory.json'],
      [...bundling('d.tar.gz'), '--since', 'inventory.json'],
    ],
    words: ['apply', 'd.tar.gz', '--base', 'b1.tar.gz', '-o', 'b2.tar.gz'],
    isOnce: true,
    isClean: true,
  },
  {
    title: 'promote',
    files: ADDON,
    before: [publishing('v1')],
    words: ['promote', '--from', 'store', '--to', 'prod'],
    settle: withoutTimes,
    between: NOTES,
    always: [{ kind: 'EIO', at: 'stat prod/v1#3' }],
  },
  {
    title: 'sign',
    files: ADDON,
    before: [['build'], ['keygen', 'own']],
    words: ['sign', 'out/aaa-1.0.0.tar.gz', '--key', 'own.key', '--number', '7'],
    settle: whenWhole,
    always: [
      { kind: 'ENOSPC+', at: 'write out/.curlew-partial-*#1' },
      { kind: 'EIO', at: 'rename out/aaa-1.0.0.tar.gz.sig#1' },
    ],
  },
];

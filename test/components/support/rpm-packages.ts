/** A small distribution: a graph of packages with everything that a resolver has to deal with. */
import type { RpmSpec } from './rpm-repository.ts';

const TOOL = 'tool:1:8000:aaaa1111';
const MANY = Array.from({ length: 4000 }, (_, index) => `/usr/share/many/deep/folder/file-${index}`);

/** What a bare system is made of, here. */
const BASE: readonly RpmSpec[] = [
  { name: 'filesystem', arch: 'x86_64', version: '3.8-6' },
  { name: 'glibc', arch: 'x86_64', version: '2.28-1', requires: ['glibc-common', 'filesystem'] },
  { name: 'glibc-common', arch: 'x86_64', version: '2.28-1' },
  { name: 'bash', arch: 'x86_64', version: '4.4-1', requires: ['glibc'], provides: ['/bin/sh'] },
];

export const PACKAGES: readonly RpmSpec[] = [
  ...BASE,
  {
    name: 'app',
    version: '2.0-1',
    bulk: 50_000,
    requires: ['library >= 1:2.0', '/usr/bin/helper', 'virtual-service', 'bash'],
    recommends: ['extra'],
  },
  { name: 'library', version: '1:2.0-3', arch: 'x86_64', bulk: 30_000, requires: ['glibc'] },
  // Higher but for the epoch.
  { name: 'library', version: '5.0-1', arch: 'x86_64' },
  // Higher, and for another machine.
  { name: 'library', version: '1:9.0-1', arch: 'aarch64' },
  { name: 'helper', files: ['/usr/bin/helper'] },
  { name: 'service', provides: ['virtual-service = 4'], version: '4.1-1' },
  { name: 'extra' },
  { name: 'left', conflicts: ['right'], requires: ['library'] },
  { name: 'right', version: '3.0-1' },
  { name: 'broken', requires: ['nothing-has-this >= 3'] },
  { name: 'many', arch: 'x86_64', files: MANY },
  { name: 'arm-only', arch: 'aarch64' },
  // Needed by nothing on amd64 but its own kind.
  { name: 'arm-app', arch: 'aarch64', requires: ['library'] },
  { name: 'curl-user', requires: ['libcurl.so.4', 'crypto-api'] },
  { name: 'libcurl', provides: ['libcurl.so.4'] },
  { name: 'libcurl-minimal', provides: ['libcurl.so.4'] },
  { name: 'openssl-libs', provides: ['crypto-api'] },
  { name: 'openssl-snapsafe-libs', provides: ['crypto-api'] },
  // A module's stream hides what has its name outside of it.
  { name: 'tool', version: '9.0-1' },
  { name: 'tool', version: '1.0-1', module: TOOL, requires: ['tool-base'] },
  { name: 'tool-extra', version: '1.0-1', module: TOOL, requires: ['tool'] },
  { name: 'tool', version: '2.0-1', module: 'tool:2:8000:bbbb2222' },
  { name: 'tool-base', version: '1.0-1', module: 'base:only:8000:cccc3333' },
  { name: 'tool-user', requires: ['tool', 'library'] },
  // A package in a stream that is neither default nor enabled.
  { name: 'hidden', version: '2.0-1', module: 'tool:2:8000:bbbb2222' },
];

/** What a later state of the repository adds. */
export const UPDATES: readonly RpmSpec[] = [
  { name: 'library', version: '1:2.1-1', arch: 'x86_64', requires: ['glibc'] },
  { name: 'tool', version: '1.1-1', module: 'tool:1:8001:aaaa1111', requires: ['tool-base'] },
  { name: 'tool-user', version: '1.1-1', requires: ['tool', 'library'] },
];

interface Stream {
  readonly name: string;
  readonly stream: string;
  readonly version?: number;
  readonly context: string;
  readonly requires?: string;
  readonly artifacts: readonly string[];
}

function streamDocument({ name, stream, version = 8000, context, requires, artifacts }: Stream): string {
  return [
    '---',
    'document: modulemd',
    'version: 2',
    'data:',
    `  name: ${name}`,
    `  stream: "${stream}"`,
    `  version: ${version}`,
    `  context: ${context}`,
    '  arch: x86_64',
    `  summary: The module ${name}`,
    '  description: >-',
    `    The module ${name}.`,
    '  license:',
    '    module:',
    '    - MIT',
    '  dependencies:',
    '  - requires:',
    ...(requires === undefined ? [] : [`      ${requires}`]),
    '      platform: [el8]',
    '  artifacts:',
    '    rpms:',
    ...artifacts.map((artifact) => `    - ${artifact}`),
    '...',
    '',
  ].join('\n');
}

function defaults(name: string, stream: string): string {
  return `---\ndocument: modulemd-defaults\nversion: 1\ndata:\n  module: ${name}\n  stream: "${stream}"\n...\n`;
}

const STREAMS: readonly Stream[] = [
  {
    name: 'tool',
    stream: '1',
    context: 'aaaa1111',
    requires: 'base: [only]',
    artifacts: ['tool-0:1.0-1.noarch', 'tool-extra-0:1.0-1.noarch'],
  },
  {
    name: 'tool',
    stream: '2',
    context: 'bbbb2222',
    artifacts: ['tool-0:2.0-1.noarch', 'hidden-0:2.0-1.noarch'],
  },
  { name: 'base', stream: 'only', context: 'cccc3333', artifacts: ['tool-base-0:1.0-1.noarch'] },
  { name: 'unrelated', stream: 'x', context: 'dddd4444', artifacts: ['unrelated-0:1.0-1.noarch'] },
];

const UPDATED: Stream = {
  name: 'tool',
  stream: '1',
  version: 8001,
  context: 'aaaa1111',
  requires: 'base: [only]',
  artifacts: ['tool-0:1.1-1.noarch', 'tool-extra-0:1.0-1.noarch'],
};

const DEFAULTS = [defaults('tool', '1'), defaults('base', 'only'), defaults('unrelated', 'x')].join('');

export const MODULES: string = STREAMS.map(streamDocument).join('') + DEFAULTS;
export const UPDATED_MODULES: string = [...STREAMS, UPDATED].map(streamDocument).join('') + DEFAULTS;

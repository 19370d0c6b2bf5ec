/**
 * The operating systems that a package can carry host packages for: one row each. The id is the folder's name in a
 * package; which host reads which folder is decided on the node.
 */
import {
  amazon2023Repositories,
  centos7Repositories,
  oracle7Repositories,
  rockyRepositories,
  ubuntuRepositories,
  type Repository,
} from './repositories.ts';

/** How packages are installed there. */
type OsFamily = 'debian' | 'rpm';

/**
 * What a directive leaves for an operating system: `archives` are package files with their metadata, `deps` only names
 * that the operator must install.
 */
export type OsOutput = 'archives' | 'deps';

/** What comes along with the packages named: all they need, what a bare system lacks of it, or nothing. */
export type OsResolve = 'all' | 'missing' | 'none';

export interface OsRow {
  readonly family: OsFamily;
  readonly version: string;
  /** For people. */
  readonly title: string;
  /** Directives of the Manifest that reach this system, and what each leaves for it. */
  readonly keywords: Readonly<Partial<Record<OsKeyword, OsOutput>>>;
  /** Image of the container that resolves and fetches packages. */
  readonly builder: string;
  /** Where the host backend gets packages from. */
  readonly repositories: readonly Repository[];
  readonly resolve: OsResolve;
  /** True when repository metadata lies beside the files. */
  readonly metadata: boolean;
  /** True when dnf takes packages only together with metadata of a module. */
  readonly modules: boolean;
}

/** Directives that name host packages. */
export const OS_KEYWORDS = ['apt', 'apt24', 'apt26', 'yum', 'yum8', 'yum9', 'yumol', 'yum2023'] as const;
export type OsKeyword = (typeof OS_KEYWORDS)[number];

function ubuntu<const Keywords extends OsRow['keywords']>(version: string, codename: string, keywords: Keywords) {
  return {
    family: 'debian',
    version,
    title: `Ubuntu ${version}`,
    keywords,
    builder: `docker.io/library/ubuntu:${version}`,
    repositories: ubuntuRepositories(codename),
    resolve: 'missing',
    metadata: true,
    modules: false,
  } as const;
}

/** Which directive yields what in which folder is kURL's, so that its add-ons find what they look for. */
export const OSES = {
  'ubuntu-16.04': ubuntu('16.04', 'xenial', { apt: 'archives' }),
  'ubuntu-18.04': ubuntu('18.04', 'bionic', { apt: 'archives' }),
  'ubuntu-20.04': ubuntu('20.04', 'focal', { apt: 'archives' }),
  'ubuntu-22.04': ubuntu('22.04', 'jammy', { apt: 'archives' }),
  'ubuntu-24.04': ubuntu('24.04', 'noble', { apt: 'deps', apt24: 'deps' }),
  'ubuntu-26.04': ubuntu('26.04', 'resolute', { apt26: 'deps' }),
  'rhel-7': {
    family: 'rpm',
    version: '7',
    title: 'RHEL, CentOS 7',
    keywords: { yum: 'archives' },
    builder: 'docker.io/library/centos:7.4.1708',
    repositories: centos7Repositories(),
    resolve: 'all',
    metadata: true,
    modules: false,
  },
  // Installed there by force, one file at a time, so nothing reads metadata.
  'rhel-7-force': {
    family: 'rpm',
    version: '7',
    title: 'Amazon Linux 2',
    keywords: { yum: 'archives' },
    builder: 'docker.io/library/centos:7.4.1708',
    repositories: centos7Repositories(),
    resolve: 'missing',
    metadata: false,
    modules: false,
  },
  'rhel-8': {
    family: 'rpm',
    version: '8',
    title: 'RHEL, CentOS, Rocky 8',
    keywords: { yum: 'archives', yum8: 'archives' },
    builder: 'docker.io/library/rockylinux:8.5',
    repositories: rockyRepositories(8),
    resolve: 'all',
    metadata: true,
    modules: true,
  },
  'rhel-9': {
    family: 'rpm',
    version: '9',
    title: 'RHEL, Rocky 9 and 10',
    keywords: { yum: 'deps', yum9: 'archives' },
    builder: 'docker.io/rockylinux/rockylinux:9',
    repositories: rockyRepositories(9),
    resolve: 'none',
    metadata: true,
    modules: false,
  },
  'ol-7': {
    family: 'rpm',
    version: '7',
    title: 'Oracle Linux 7',
    keywords: { yumol: 'archives' },
    builder: 'docker.io/library/centos:7.4.1708',
    repositories: oracle7Repositories(),
    resolve: 'all',
    metadata: true,
    modules: false,
  },
  'amazon-2023': {
    family: 'rpm',
    version: '2023',
    title: 'Amazon Linux 2023',
    keywords: { yum: 'deps', yum2023: 'archives' },
    builder: 'docker.io/library/amazonlinux:2023',
    repositories: amazon2023Repositories(),
    resolve: 'none',
    metadata: true,
    modules: false,
  },
} as const satisfies Readonly<Record<string, OsRow>>;

export type OsId = keyof typeof OSES;

/** Every id, in the order of the table. */
export const OS_IDS: readonly OsId[] = Object.keys(OSES).filter(isOsId);

export function isOsId(text: string): text is OsId {
  return Object.hasOwn(OSES, text);
}

export function osRow(id: OsId): OsRow {
  return OSES[id];
}

/** Where packages named by a directive go, in the order of the table. */
export function osOutputs(keyword: OsKeyword): readonly { readonly os: OsId; readonly output: OsOutput }[] {
  return OS_IDS.flatMap((os) => {
    const output = osRow(os).keywords[keyword];
    return output === undefined ? [] : [{ os, output }];
  });
}

/** Distributions that are served by folders of other names, by the number of their major version. */
const SERVED: readonly (readonly [names: RegExp, folders: (major: string) => readonly string[]])[] = [
  [/^(?:centos|rhel|rocky|almalinux)$/, (major) => [major === '10' ? 'rhel-9' : `rhel-${major}`]],
  [/^ol$/, (major) => [`ol-${major}`, major === '10' ? 'rhel-9' : `rhel-${major}`]],
  [/^(?:amazon|amzn)$/, (major) => (major === '2' ? ['rhel-7-force', 'rhel-7'] : [`amazon-${major}`])],
];

/**
 * All folders that a system may read, by the name of its own folder or by distribution and version (`rocky-8.9`):
 * nodes look into one after the other, so what one of them needs are all of these. In the order of the table; none for
 * a system that no package can hold anything for. On nodes the library of hooks decides the same (`curlew_os_names`).
 */
export function osFolders(name: string): readonly OsId[] {
  const [, distribution = '', version = ''] = /^([a-z]+)-(\d[\d.]*)$/.exec(name) ?? [];
  const [major = ''] = version.split('.', 1);
  const [, served] = SERVED.find(([names]) => names.test(distribution)) ?? [];
  const found = name === 'rhel-7-force' ? ['rhel-7-force', 'rhel-7'] : (served?.(major) ?? [name]);
  return OS_IDS.filter((id) => found.includes(id));
}

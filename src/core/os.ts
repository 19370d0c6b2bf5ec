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

/** How packages are installed on the system. */
type OsFamily = 'debian' | 'rpm';

/**
 * The output of a directive for an operating system: `archives` are package files with their metadata, `deps` only names
 * that the operator must install.
 */
export type OsOutput = 'archives' | 'deps';

/** Which dependencies are included: all of them, those that a minimal system is missing, or none. */
export type OsResolve = 'all' | 'missing' | 'none';

export interface OsRow {
  readonly family: OsFamily;
  readonly version: string;
  /** For people. */
  readonly title: string;
  /** Manifest directives that apply to this system, and the output of each. */
  readonly keywords: Readonly<Partial<Record<OsKeyword, OsOutput>>>;
  /** Image of the container that resolves and fetches packages. */
  readonly builder: string;
  /** Where the host backend gets packages from. */
  readonly repositories: readonly Repository[];
  readonly resolve: OsResolve;
  /** True if repository metadata is next to the files. */
  readonly metadata: boolean;
  /** True if dnf requires module metadata with the packages. */
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

/** Directives, outputs and folders are those of kURL, so that its add-ons find their files. */
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
  // Add-ons force the installation of single files there, so nothing reads metadata.
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

/** The systems and outputs of packages that a directive names, in the order of the table. */
export function osOutputs(keyword: OsKeyword): readonly { readonly os: OsId; readonly output: OsOutput }[] {
  return OS_IDS.flatMap((os) => {
    const output = osRow(os).keywords[keyword];
    return output === undefined ? [] : [{ os, output }];
  });
}

/** Distributions that read folders with other names, by major version. */
const SERVED: readonly (readonly [names: RegExp, folders: (major: string) => readonly string[]])[] = [
  [/^(?:centos|rhel|rocky|almalinux)$/, (major) => [major === '10' ? 'rhel-9' : `rhel-${major}`]],
  [/^ol$/, (major) => [`ol-${major}`, major === '10' ? 'rhel-9' : `rhel-${major}`]],
  [/^(?:amazon|amzn)$/, (major) => (major === '2' ? ['rhel-7-force', 'rhel-7'] : [`amazon-${major}`])],
];

/**
 * All folders that a system may read, by the name of its own folder or by distribution and version (`rocky-8.9`). Nodes try
 * one after the other, so a system needs all of them. In the order of the table; empty for a system that packages do not
 * support. On nodes, the hook library implements the same rule (`curlew_os_names`).
 */
export function osFolders(name: string): readonly OsId[] {
  const [, distribution = '', version = ''] = /^([a-z]+)-(\d[\d.]*)$/.exec(name) ?? [];
  const [major = ''] = version.split('.', 1);
  const [, served] = SERVED.find(([names]) => names.test(distribution)) ?? [];
  const folders = name === 'rhel-7-force' ? ['rhel-7-force', 'rhel-7'] : (served?.(major) ?? [name]);
  return OS_IDS.filter((id) => folders.includes(id));
}

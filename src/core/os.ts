/**
 * The operating systems that a package can carry host packages for: one row each. The id is the folder's name in a
 * package; which host reads which folder is decided on the node.
 */

/** How packages are installed there. */
type OsFamily = 'debian' | 'rpm';

/**
 * What a directive leaves for an operating system: `archives` are package files with their metadata, `deps` only names
 * that the operator must install.
 */
export type OsOutput = 'archives' | 'deps';

export interface OsRow {
  readonly family: OsFamily;
  readonly version: string;
  /** For people. */
  readonly title: string;
  /** Directives of the Manifest that reach this system, and what each leaves for it. */
  readonly keywords: Readonly<Partial<Record<OsKeyword, OsOutput>>>;
}

/** Directives that name host packages. */
export const OS_KEYWORDS = ['apt', 'apt24', 'apt26', 'yum', 'yum8', 'yum9', 'yumol', 'yum2023'] as const;
export type OsKeyword = (typeof OS_KEYWORDS)[number];

/** Which directive yields what in which folder is kURL's, so that its add-ons find what they look for. */
export const OSES = {
  'ubuntu-16.04': { family: 'debian', version: '16.04', title: 'Ubuntu 16.04', keywords: { apt: 'archives' } },
  'ubuntu-18.04': { family: 'debian', version: '18.04', title: 'Ubuntu 18.04', keywords: { apt: 'archives' } },
  'ubuntu-20.04': { family: 'debian', version: '20.04', title: 'Ubuntu 20.04', keywords: { apt: 'archives' } },
  'ubuntu-22.04': { family: 'debian', version: '22.04', title: 'Ubuntu 22.04', keywords: { apt: 'archives' } },
  'ubuntu-24.04': {
    family: 'debian',
    version: '24.04',
    title: 'Ubuntu 24.04',
    keywords: { apt: 'deps', apt24: 'deps' },
  },
  'ubuntu-26.04': { family: 'debian', version: '26.04', title: 'Ubuntu 26.04', keywords: { apt26: 'deps' } },
  'rhel-7': { family: 'rpm', version: '7', title: 'RHEL, CentOS 7', keywords: { yum: 'archives' } },
  'rhel-7-force': { family: 'rpm', version: '7', title: 'Amazon Linux 2', keywords: { yum: 'archives' } },
  'rhel-8': {
    family: 'rpm',
    version: '8',
    title: 'RHEL, CentOS, Rocky 8',
    keywords: { yum: 'archives', yum8: 'archives' },
  },
  'rhel-9': { family: 'rpm', version: '9', title: 'RHEL, Rocky 9 and 10', keywords: { yum: 'deps', yum9: 'archives' } },
  'ol-7': { family: 'rpm', version: '7', title: 'Oracle Linux 7', keywords: { yumol: 'archives' } },
  'amazon-2023': {
    family: 'rpm',
    version: '2023',
    title: 'Amazon Linux 2023',
    keywords: { yum: 'deps', yum2023: 'archives' },
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

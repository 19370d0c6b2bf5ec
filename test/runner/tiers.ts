/**
 * Which test files a run takes. A tier takes what the one before it takes, and more; the rest is what the default tier has besides
 * the fast one, and a soak is outside of them.
 */

export const TIERS = ['fast', 'rest', 'default', 'all', 'soak'] as const;
export type Tier = (typeof TIERS)[number];

/** A test file, and what its lines `// runs alone: REASON`, `// own process: WHY`, `// not fast: WHY` and `// soak: WHAT` say. */
export interface TestFile {
  readonly path: string;
  /** What it needs the machine to itself for. */
  readonly alone: string | undefined;
  /** Why it shares its process with no other file. */
  readonly own: string | undefined;
  /** Why it takes long though it needs nothing. */
  readonly slow: string | undefined;
  /** What it does more of in a soak. */
  readonly soak: string | undefined;
}

export interface Group {
  /** Which test files, for messages. */
  readonly title: string;
  readonly has: (file: TestFile) => boolean;
  readonly tier: Tier;
  /** Why the tiers before leave it out. */
  readonly reason: string;
  /** Command that runs it. */
  readonly command: string;
  /** It needs what `scripts/tools` prepares, and root. */
  readonly needsTools: boolean;
}

/** A file in none of these belongs to every tier; one in several to the first. */
const GROUPS: readonly Group[] = [
  {
    title: 'of test/components/',
    has: ({ path }) => path.startsWith('test/components/'),
    tier: 'default',
    reason: 'needs real servers, engines and runtimes',
    command: 'scripts/test',
    needsTools: true,
  },
  {
    title: 'of test/nightly/',
    has: ({ path }) => path.startsWith('test/nightly/'),
    tier: 'all',
    reason: 'needs compiled oracles, other architectures or many minutes',
    command: 'scripts/test --all',
    needsTools: true,
  },
  {
    title: 'with a line `// not fast: WHY`',
    has: ({ slow }) => slow !== undefined,
    tier: 'default',
    reason: 'start hundreds of processes each',
    command: 'scripts/test',
    needsTools: false,
  },
];

export interface LeftOut {
  readonly group: Group;
  readonly files: readonly TestFile[];
}

export interface Choice {
  readonly files: readonly TestFile[];
  readonly leftOut: readonly LeftOut[];
}

export function readTestFile(path: string, text: string): TestFile {
  const mark = (word: string): string | undefined => new RegExp(`^// ${word}: (.+)$`, 'm').exec(text)?.[1];
  return { path, alone: mark('runs alone'), own: mark('own process'), slow: mark('not fast'), soak: mark('soak') };
}

/** Whether the file runs in a process with others. The start of a process is most of what a small file takes. */
export function isShared(file: TestFile, tier: Tier): boolean {
  const isOwn = file.own !== undefined || file.alone !== undefined || groupOf(file) !== undefined;
  return tier !== 'soak' && !isOwn;
}

export function groupOf(file: TestFile): Group | undefined {
  return GROUPS.find(({ has }) => has(file));
}

/**
 * Divides the test files whose path contains one of the filters (all of them when there is none) at the tier; what needs tools is
 * left out where they cannot be had.
 */
export function chooseFiles(
  all: readonly TestFile[],
  tier: Tier,
  filters: readonly string[],
  { canHaveTools = true }: { readonly canHaveTools?: boolean } = {},
): Choice {
  const wanted = all.filter(({ path }) => filters.length === 0 || filters.some((part) => path.includes(part)));
  if (tier === 'soak') return { files: wanted.filter(({ soak }) => soak !== undefined), leftOut: [] };
  if (tier === 'rest') {
    const { files, leftOut } = chooseFiles(all, 'default', filters, { canHaveTools });
    return { files: files.filter((file) => groupOf(file) !== undefined), leftOut };
  }
  const isIn = (group: Group | undefined): boolean =>
    group === undefined || (TIERS.indexOf(group.tier) <= TIERS.indexOf(tier) && (canHaveTools || !group.needsTools));
  const leftOut = GROUPS.filter((group) => !isIn(group))
    .map((group) => ({ group, files: wanted.filter((file) => groupOf(file) === group) }))
    .filter(({ files }) => files.length > 0);
  return { files: wanted.filter((file) => isIn(groupOf(file))), leftOut };
}

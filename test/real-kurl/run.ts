/** A repository in kURL's manner through curlew, stage by stage. */
import type { AddonFolder } from '../../src/manifest/find-addons.ts';
import { installAll } from './install-all.ts';
import { buildAll, lintAll, planAll, readRepository, type Repository } from './packaging.ts';
import { judge, type Explanation, type Judged, type Outcome, type Stage } from './report.ts';

export interface RunOptions {
  /** The repository: `addons/`, and `scripts/` where objects are compared. Nothing is written there. */
  readonly root: string;
  /** Names of add-ons; all of them when it is empty. */
  readonly only: readonly string[];
  readonly stages: readonly Stage[];
  /** Lint and plan only the newest version of each. */
  readonly newest: boolean;
  /** Folder of kURL's own programs, for its scripts. */
  readonly bin: string | undefined;
  /** Where everything is made. */
  readonly box: string;
  /** By add-on, what its spec holds: itself and others, with settings. Those left out are by themselves. */
  readonly specs: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly known: readonly Explanation[];
  readonly say: (text: string) => void;
}

const INSTALLING: readonly Stage[] = ['hooks', 'objects', 'reruns', 'upgrade'];

export async function runRepository(options: RunOptions): Promise<readonly Judged[]> {
  const { root, only, stages, newest, box, known, say } = options;
  const repository = await readRepository(root, only);
  const outcomes: Outcome[] = [];
  const packed = newest ? { ...repository, versions: repository.newest } : repository;
  if (stages.includes('lint')) outcomes.push(...(await lintAll(packed)));
  if (stages.includes('plan')) outcomes.push(...(await planAll(packed, box)));
  const installs = stages.some((stage) => INSTALLING.includes(stage));
  if (installs || stages.includes('build')) {
    const chosen = stages.includes('upgrade') ? [...before(repository), ...repository.newest] : repository.newest;
    say(`building ${chosen.length} packages`);
    const packages = await buildAll(repository, chosen, box);
    outcomes.push(...packages.outcomes);
    if (installs) outcomes.push(...(await installAll(packages, { ...options, newest: repository.newest })));
  }
  return outcomes.filter(({ stage }) => stages.includes(stage)).map((outcome) => judge(outcome, known));
}

/** The version before the newest of each add-on that has one. */
function before({ versions, newest }: Repository): readonly AddonFolder[] {
  return newest.flatMap(({ name }) => versions.filter((one) => one.name === name).slice(-2, -1));
}

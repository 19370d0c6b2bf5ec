/** Which hooks a new add-on gets. Pure. */
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { HOOK_NAMES, type Hook } from '../hooks.ts';

const USUAL: readonly Hook[] = ['install', 'already_applied', 'outro', 'pre_remove', 'leave', 'uninstall'];

/**
 * The hooks that words such as `install,join` name, and the one that installs; `all` are all of them. Without a word: what
 * an add-on of a cluster usually has, and a check of the settings if it takes any. Throws `USAGE`.
 */
export function chooseHooks(words: readonly string[], { settings }: { readonly settings: boolean }): ReadonlySet<Hook> {
  const names = words
    .flatMap((word) => word.split(','))
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (names.length === 0) return new Set(settings ? ['pre_init', ...USUAL] : USUAL);
  if (names.includes('all')) return new Set(HOOK_NAMES);
  const chosen = names.map((name) => {
    const hook = HOOK_NAMES.find((one) => one === name.replaceAll('-', '_'));
    if (hook !== undefined) return hook;
    const near = nearest(name, HOOK_NAMES);
    const hint = near === undefined ? `known are all, ${HOOK_NAMES.join(', ')}` : `did you mean ${near}?`;
    throw new CurlewError('USAGE', `--hooks: no hook is called "${name.slice(0, 60)}"`, { hint });
  });
  return new Set<Hook>(['install', ...chosen]);
}

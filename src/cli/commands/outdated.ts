/** `curlew outdated`: compares what tags, packages and assets currently resolve to with the lock. */
import { OUTDATED } from '../../requests/build.ts';
import { ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import type { OutdatedAddon } from '../../build/outdated.ts';
import { commandFor } from '../command.ts';

/** Shortens digests to twelve digits. */
function short(text: string): string {
  return text.replaceAll(/sha256:([0-9a-f]{12})[0-9a-f]{52}/g, '$1');
}

function linesOf({ ref, lockedBy, changes, problem }: OutdatedAddon): readonly string[] {
  const id = `${ref.name} ${ref.version}`;
  if (problem !== undefined) {
    const hint = problem.hint === undefined ? [] : [`  hint: ${problem.hint}`];
    return [`${id}: ${problem.message}`, ...hint];
  }
  if (lockedBy === undefined) return [`${id}: nothing to compare with: no Manifest.lock and no package`];
  if (changes.length === 0) return [`${id}: matches its ${lockedBy}`];
  const rows = changes.flatMap(({ kind, name, locked, now }) => [
    `  ${kind} ${name}`,
    `    locked  ${short(locked ?? '-')}`,
    `    now     ${short(now ?? '-')}`,
  ]);
  return [`${id}: differs from its ${lockedBy}`, ...rows];
}

export const command = commandFor(OUTDATED, {
  details:
    'Compares what every directive currently resolves to with the committed Manifest.lock, or with the lock of the package\n' +
    'in the --out folder if none is committed. curlew build --update-lock adopts the changes. An add-on that cannot be\n' +
    'compared, such as for an asset with another digest, is listed with the error, whose code is the exit status.',
  examples: ['curlew outdated', 'curlew outdated ekco --json'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/outdated.ts')).outdated(request, context),
  exitCode: (addons) => {
    const failed = addons.find(({ problem }) => problem !== undefined);
    return failed?.problem === undefined ? 0 : ERROR_CODES[failed.problem.code];
  },
  render: (addons) => (addons.length === 0 ? 'no add-ons found' : addons.flatMap(linesOf).join('\n')),
});

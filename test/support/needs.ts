/** What tests need of the machine besides Node, git and bash, and what becomes of them without it. */
import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Suite } from './suite.ts';

function present(program: string): boolean {
  if (program.includes('/')) return existsSync(program);
  return (process.env['PATH'] ?? '').split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Says which of these programs the machine does not have, or undefined when it has all of them. */
export function missing(...programs: readonly string[]): string | undefined {
  const absent = programs.filter((program) => !present(program));
  return absent.length === 0 ? undefined : `missing: ${absent.join(', ')}`;
}

/** `test`, whose tests are skipped where there is a reason. */
export function unless(reason: string | undefined, test: Suite): (...args: Parameters<Suite>) => void {
  return (name, body) => {
    if (reason === undefined) test(name, body);
    else test.skip(name, reason);
  };
}

/** An add-on back to what it was before its last change. */
import { lastAsked } from '../runtime/run/last-asked.ts';
import { rollbackRequest } from '../runtime/run/rollback.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { Context } from './context.ts';
import { askedFor, askedOf, type Shape } from './node/asked.ts';
import { KEPT_FIELDS, runKept, type KeptRequest } from './node/kept-run.ts';

export interface RollbackRequest extends KeptRequest {
  /** Name of the add-on. */
  readonly addon: string;
}

export const ROLLBACK: Shape<RollbackRequest> = {
  fields: { ...KEPT_FIELDS, addon: 'text' },
  operands: 'addon',
  needsOperands: true,
};

/**
 * Installs the package and the settings that the add-on had before it was changed last. `NOT_FOUND` when there is nothing to go
 * back to.
 */
export async function rollback(request: RollbackRequest, context: Context): Promise<RunResult> {
  const { addon } = request;
  const { cwd, signal } = context;
  const command = askedFor({ name: 'rollback', request, cwd }, ROLLBACK);
  const wasThis = async (directory: string): Promise<boolean> => {
    const last = askedOf((await lastAsked(directory))?.asked?.command, ROLLBACK);
    return last?.name === 'rollback' && last.request.addon === addon;
  };
  const wanted = async (directory: string): ReturnType<typeof rollbackRequest> =>
    rollbackRequest(directory, addon, { isAgain: async () => wasThis(directory), signal });
  return runKept({ command, wanted }, request, context, (result) => result);
}

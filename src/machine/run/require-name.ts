/** Names of machines and nodes that a person has typed. */
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';

const MAX_NAMED = 10;

/** `NOT_FOUND` for a name that is not among these, with the nearest of them. */
export function requireName(name: string, names: readonly string[], what: Unknown): void {
  if (!names.includes(name)) throw unknownName(name, names, what);
}

interface Unknown {
  readonly doing: string;
  readonly missing: string;
}

export function unknownName(name: string, names: readonly string[], { doing, missing }: Unknown): CurlewError {
  const near = nearest(name, names);
  return new CurlewError('NOT_FOUND', `cannot ${doing}: ${missing}`, {
    hint: near === undefined ? `there are ${names.slice(0, MAX_NAMED).join(', ')}` : `did you mean ${near}?`,
  });
}

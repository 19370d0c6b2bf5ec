/** Amounts of bytes as people type them. */
import { CurlewError } from '../core/errors.ts';

const POWERS = ['', 'K', 'M', 'G', 'T'];

/** `4480M`, `1.5G`, `512K`, `1000`: powers of 1024; `10MB`: powers of 1000. Throws `USAGE` for what is none, and for 0. */
export function parseSize(text: string, option: string): number {
  const [, digits = '', power = '', decimal] = /^(\d{1,15}(?:\.\d{1,3})?)(?:([KMGT])(?:(B)|iB)?|B)?$/i.exec(text) ?? [];
  const factor = (decimal === undefined ? 1024 : 1000) ** POWERS.indexOf(power.toUpperCase());
  const size = Math.floor(Number(digits) * factor);
  if (digits !== '' && size > 0 && Number.isSafeInteger(size)) return size;
  throw new CurlewError('USAGE', `--${option} ${text}: not an amount of bytes`, {
    hint: 'write it as 500K, 10M or 1.5G',
  });
}

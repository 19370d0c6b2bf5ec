/** `1 file`, `2 files`: a number and a noun whose plural ends in s. */
export function counted(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

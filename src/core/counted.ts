/** `1 file`, `2 files`: how many of a thing whose plural takes an s. */
export function counted(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

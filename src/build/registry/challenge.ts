/** Parses WWW-Authenticate strictly and with limits. Pure. Source: RFC 9110, 11.6.1; distribution spec, token auth. */

export interface Challenge {
  readonly scheme: 'basic' | 'bearer';
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

const HEADER_LIMIT = 8192;
const MAX_CHALLENGES = 8;
const MAX_PARAMETERS = 16;
const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const QUOTED = /"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e])*)"/y;
/** More than a token of the standard: some registries send addresses and slashes without quotes. */
const UNQUOTED = /[^\s",]+/y;
const SPACE = /[ \t]*/y;

/** A cursor over a header's text. */
function reader(text: string) {
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const match = pattern.exec(text) ?? undefined;
    if (match !== undefined) at = pattern.lastIndex;
    return match;
  };
  return {
    space: (): void => void take(SPACE),
    token: (): string | undefined => take(TOKEN)?.[0].toLowerCase(),
    unquoted: (): string | undefined => take(UNQUOTED)?.[0],
    quoted: (): string | undefined => take(QUOTED)?.[1]?.replaceAll(/\\(.)/g, '$1'),
    is: (char: string): boolean => {
      if (text[at] !== char) return false;
      at += 1;
      return true;
    },
    mark: (): number => at,
    back: (to: number): void => {
      at = to;
    },
    ended: (): boolean => at >= text.length,
  };
}

/** Parses `name = value`; undefined, without moving the cursor, if the next word is a scheme. */
function parameter(read: ReturnType<typeof reader>): readonly [string, string] | undefined {
  const start = read.mark();
  const name = read.token();
  read.space();
  if (name === undefined || !read.is('=')) {
    read.back(start);
    return undefined;
  }
  read.space();
  const value = read.quoted() ?? read.unquoted();
  if (value !== undefined) return [name, value];
  read.back(start);
  return undefined;
}

/**
 * The basic and bearer challenges of a header, without other schemes. Undefined if any part of the header is invalid: a partly
 * parsed challenge is not used.
 */
export function parseChallenges(header: string): readonly Challenge[] | undefined {
  if (header.length > HEADER_LIMIT) return undefined;
  const read = reader(header);
  const challenges: Challenge[] = [];
  for (let count = 0; !read.ended(); count += 1) {
    read.space();
    const scheme = read.token();
    if (scheme === undefined || count >= MAX_CHALLENGES) return undefined;
    const parameters = new Map<string, string>();
    read.space();
    for (let next = parameter(read); next !== undefined; next = parameter(read)) {
      const [name, value] = next;
      if (parameters.has(name) || parameters.size >= MAX_PARAMETERS) return undefined;
      parameters.set(name, value);
      read.space();
      if (!read.is(',')) break;
      read.space();
    }
    if (scheme === 'basic' || scheme === 'bearer') challenges.push({ scheme, parameters });
    read.space();
    if (!read.ended() && parameters.size === 0 && !read.is(',')) return undefined;
  }
  return challenges;
}

/** Collects what is wrong with a channel, or with another document of a fleet. Pure. */
import type { GenericSchema } from 'valibot';
import type { Diagnostic, Place } from '../../core/diagnostic.ts';
import { mended, type Problem, type Read } from '../../core/schema.ts';
import type { JsonObject, Path, YamlText } from '../../formats/yaml/yaml.ts';

const SHOWN = 60;

/** The path of a field of the map at `path`; if it is missing, that of the first one. */
export function pathsOf(fields: object, path: Path): (field: string) => Path {
  return (field) => {
    const key = Object.hasOwn(fields, field) ? field : Object.keys(fields)[0];
    return key === undefined ? path : [...path, key];
  };
}

/** A mistake that kops accepts is only a warning in its own indexes, which are `lenient`. */
export class Findings {
  readonly diagnostics: Diagnostic[];
  readonly lenient: boolean;
  readonly #placeOf: YamlText['placeOf'];
  readonly #prefix: string;
  /** Keys as written, by the JSON of their paths, if they are read as others. */
  readonly #written = new Map<string, string>();

  /** Codes begin with `prefix`. */
  constructor(
    { placeOf, diagnostics }: Pick<YamlText, 'placeOf' | 'diagnostics'>,
    lenient: boolean,
    prefix: 'channel' | 'fleet' = 'channel',
  ) {
    this.diagnostics = [...diagnostics];
    this.#prefix = prefix;
    this.#placeOf = placeOf;
    this.lenient = lenient;
  }

  placeOf(path: Path): Place {
    return this.#placeOf(path.map((step, at) => this.#written.get(JSON.stringify(path.slice(0, at + 1))) ?? step));
  }
  add(severity: Diagnostic['severity'], code: string, path: Path, message: string, hint?: string): void {
    this.diagnostics.push({ code: `${this.#prefix}/${code}`, severity, message, place: this.placeOf(path), hint });
  }
  error(code: string, path: Path, message: string, hint?: string): void {
    this.add('error', code, path, message, hint);
  }
  /** Warns that a field does nothing. */
  ignored(path: Path, field: string, why: string, hint?: string): void {
    this.add('warning', 'ignored', path, `${field} has no effect: ${why}`, hint);
  }
  mistake(code: string, path: Path, message: string, hint?: string): void {
    this.add(this.lenient ? 'warning' : 'error', code, path, message, hint);
  }
  wrong(field: string, path: Path, what: string, hint?: string): undefined {
    this.error('value', path, `${field} must be ${what}`, hint);
  }

  /**
   * A document without what is wrong in it: undefined is there instead. An index of kops has what kops reads: numbers as texts,
   * and keys without their case.
   */
  read<Schema extends GenericSchema>(schema: Schema, document: JsonObject): Read<Schema> {
    return mended(schema, document, (problem) => this.#mend(problem));
  }

  #mend({ path, hint, near, issue: { type, input, message: what, path: steps } }: Problem): void {
    const map = steps?.at(-1)?.input as Record<string | number, unknown>;
    const key = path.at(-1) ?? '';
    map[key] = undefined;
    if (type === 'never') this.#unknown(map, path, input, { near, hint });
    else if (typeof key === 'number') this.wrong(`each item of ${String(path.at(-2))}`, path, what);
    else if (type !== 'string' && type !== 'picklist' && type !== 'regex') this.wrong(key, path, what, hint);
    else if (typeof input === 'number' || typeof input === 'bigint' || typeof input === 'boolean') {
      this.mistake('value', path, `${key} is read as the ${typeof input} ${input}`, 'put it in quotes');
      if (this.lenient) map[key] = String(input);
    } else if (typeof input !== 'string') this.wrong(key, path, 'a text');
    else if (input !== '' || !this.lenient) this.mistake('value', path, `${key} must be ${what}`, hint);
  }

  #unknown(
    map: Record<string, unknown>,
    path: Path,
    value: unknown,
    { near, hint }: Pick<Problem, 'near' | 'hint'>,
  ): void {
    const key = String(path.at(-1));
    Reflect.deleteProperty(map, key);
    const isNear = this.lenient && near?.toLowerCase() === key.toLowerCase();
    if (!isNear) return this.mistake('unknown-field', path, `"${key.slice(0, SHOWN)}" is not a field`, hint);
    this.mistake('unknown-field', path, `"${key}" is read as "${near}"`, `write "${near}"`);
    const readAs = JSON.stringify([...path.slice(0, -1), near]);
    // The exact name takes precedence, wherever it is.
    if (Object.hasOwn(map, near) && !this.#written.has(readAs)) return;
    map[near] = value;
    this.#written.set(readAs, key);
  }
}

/** Reads the fields of a map from outside one by one, with a finding for each mistake. Pure. */
import type { Diagnostic, Place } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { isJsonObject, type Json, type JsonObject, type Path, type YamlText } from '../formats/yaml/yaml.ts';

/** Collects findings. What kops accepts is only a warning in its own indexes. */
export class Findings {
  readonly diagnostics: Diagnostic[];
  readonly lenient: boolean;
  readonly placeOf: YamlText['placeOf'];
  constructor({ placeOf, diagnostics }: Pick<YamlText, 'placeOf' | 'diagnostics'>, lenient: boolean) {
    this.diagnostics = [...diagnostics];
    this.placeOf = placeOf;
    this.lenient = lenient;
  }
  add(severity: Diagnostic['severity'], code: string, path: Path, message: string, hint?: string): void {
    this.diagnostics.push({ code: `channel/${code}`, severity, message, place: this.placeOf(path), hint });
  }
  error(code: string, path: Path, message: string, hint?: string): void {
    this.add('error', code, path, message, hint);
  }
  mistake(code: string, path: Path, message: string, hint?: string): void {
    this.add(this.lenient ? 'warning' : 'error', code, path, message, hint);
  }
}

/** A map with its path. Each reader returns undefined for a field that is missing or has a finding. */
export class Fields {
  readonly #map: JsonObject;
  readonly #path: Path;
  readonly #found: Findings;
  /** Fields as they are written, by their names. */
  readonly #written: ReadonlyMap<string, string>;
  constructor(map: JsonObject, path: Path, found: Findings, written?: ReadonlyMap<string, string>) {
    this.#map = map;
    this.#path = path;
    this.#found = found;
    this.#written = written ?? new Map(Object.keys(map).map((key) => [key, key]));
  }

  /**
   * Reports fields that are not `known`, and returns the known ones. kops, which is written in Go, ignores the case of
   * field names, so in its indexes a field in another case counts.
   */
  recognize(known: readonly string[]): Fields {
    const map: Record<string, Json> = {};
    const written = new Map<string, string>();
    for (const [key, value] of Object.entries(this.#map)) {
      const alike = known.find((name) => name.toLowerCase() === key.toLowerCase());
      const name = known.includes(key) ? key : this.#found.lenient && alike !== undefined ? alike : undefined;
      const near = name ?? alike ?? nearest(key, known);
      if (name !== key) {
        const message = name === undefined ? `"${key.slice(0, 60)}" is not a field` : `"${key}" is read as "${name}"`;
        const hint = near === undefined ? `known fields: ${known.join(', ')}` : `write "${near}"`;
        this.#found.mistake('unknown-field', [...this.#path, key], message, hint);
      }
      // The exact name wins, wherever it is.
      if (name === undefined || (name !== key && Object.hasOwn(this.#map, name))) continue;
      map[name] = value;
      written.set(name, key);
    }
    return new Fields(map, this.#path, this.#found, written);
  }

  has(field: string): boolean {
    return Object.hasOwn(this.#map, field);
  }
  /** For findings: of the first field if this one is missing. */
  path(field: string): Path {
    const [first] = this.#written.values();
    const key = this.#written.get(field) ?? first;
    return key === undefined ? this.#path : [...this.#path, key];
  }
  get(field: string): Json | undefined {
    return this.has(field) ? this.#map[field] : undefined;
  }
  place(): Place {
    return this.#found.placeOf(this.path(''));
  }
  data(): JsonObject {
    return this.#map;
  }
  wrong(field: string, what: string, hint?: string): undefined {
    this.#found.error('value', this.path(field), `${field} must be ${what}`, hint);
  }

  /** Numbers and booleans are texts to kops: `version: 1.10` is 1.1. */
  text(field: string): string | undefined {
    const value = this.get(field);
    if (value === undefined || typeof value === 'string') return value;
    if (typeof value === 'object') return this.wrong(field, 'a text');
    const message = `${field} is read as the ${typeof value} ${String(value)}`;
    this.#found.mistake('value', this.path(field), message, 'put it in quotes');
    return this.#found.lenient ? String(value) : undefined;
  }
  /** A text of these, or of this pattern. */
  textLike<T extends string>(field: string, like: readonly T[] | RegExp, what: string): T | undefined {
    const text = this.text(field);
    if (text === undefined || (text === '' && this.#found.lenient)) return undefined;
    const isLike = (value: string): value is T =>
      like instanceof RegExp ? like.test(value) : like.some((one) => one === value);
    if (isLike(text)) return text;
    const near = like instanceof RegExp ? undefined : nearest(text, like);
    this.#found.mistake('value', this.path(field), `${field} must be ${what}`, near && `did you mean "${near}"?`);
    return undefined;
  }
  flag(field: string): boolean {
    const value = this.get(field);
    if (value === undefined || typeof value === 'boolean') return value ?? false;
    this.wrong(field, 'true or false');
    return false;
  }
  map(field: string): Fields | undefined {
    const value = this.get(field);
    if (isJsonObject(value)) return new Fields(value, this.path(field), this.#found);
    return value === undefined ? undefined : this.wrong(field, 'a map');
  }
  /** The maps in a list. */
  maps(field: string): readonly Fields[] {
    return this.#list(field).flatMap((item, index) => {
      const path = [...this.path(field), index];
      if (isJsonObject(item)) return [new Fields(item, path, this.#found)];
      this.#found.error('value', path, `each item of ${field} must be a map`);
      return [];
    });
  }
  texts(field: string): readonly string[] {
    return this.#list(field).flatMap((item, index) => {
      if (typeof item === 'string') return [item];
      this.#found.error('value', [...this.path(field), index], `each item of ${field} must be a text`);
      return [];
    });
  }
  /** A map of texts. */
  labels(field: string): Readonly<Record<string, string>> {
    const fields = this.map(field);
    if (fields === undefined) return {};
    const texts = Object.keys(fields.#map).map((key) => [key, fields.text(key) ?? ''] as const);
    return Object.fromEntries(texts);
  }
  #list(field: string): readonly Json[] {
    const value = this.get(field);
    if (Array.isArray(value)) return value as readonly Json[];
    if (value !== undefined) this.wrong(field, 'a list');
    return [];
  }
}

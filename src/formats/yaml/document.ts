/** Files that people write, read by a schema: each problem has its place in the text. Pure. */
import type { GenericSchema } from 'valibot';
import type { Place } from '../../core/diagnostic.ts';
import { asError } from '../../core/errors.ts';
import { shallowJson } from '../../core/json.ts';
import { convert, type Read } from '../../core/schema.ts';
import { readYaml, type Path, type YamlText } from './yaml.ts';

export interface JsonFile<Schema extends GenericSchema> {
  /** Undefined if there are problems. */
  readonly value: Read<Schema> | undefined;
  readonly placeOf: (path: Path) => Place;
}

/** Receives a problem. */
export type ReportProblem = (place: Place, message: string, hint?: string) => void;

/** Reads a JSON file; `file` is its name for messages. */
export function readJsonFile<Schema extends GenericSchema>(
  schema: Schema,
  { file, text }: { readonly file: string; readonly text: string },
  report: ReportProblem,
): JsonFile<Schema> {
  // Only for the places: JSON is YAML, too.
  let yaml: YamlText | undefined;
  const placeOf = (path: Path): Place => (yaml ??= readYaml(file, text)).placeOf(path);
  let json: unknown;
  try {
    json = shallowJson(text);
  } catch (error) {
    report(placeOf([]), `not JSON: ${asError(error).message.slice(0, 200)}`);
    return { value: undefined, placeOf };
  }
  const read = convert(schema, json);
  if ('value' in read) return { value: read.value, placeOf };
  for (const { path, message, hint } of read.problems) report(placeOf(path), message, hint);
  return { value: undefined, placeOf };
}

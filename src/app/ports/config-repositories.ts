/** Package repositories in the configuration file, which replace the operating systems' public ones. */
import { isObject } from '../../core/json.ts';
import { isOsId, OS_IDS, osRow, type OsId } from '../../core/os.ts';
import { nearest } from '../../core/nearest.ts';
import type { Repository } from '../../core/repositories.ts';

type Bad = (what: string) => Error;

const ID = /^[a-z0-9][a-z0-9-]{0,63}$/;
const URL_FORM = /^(?:https?|file):\/\/[^\s]+$/;
const KEYS = ['id', 'url', 'suites', 'components', 'key', 'form'];

/** Parses an object by operating system ID; `read` parses its values. An unknown ID is an error. */
export function byOs<Value>(
  value: unknown,
  { key, bad, read }: { readonly key: string; readonly bad: Bad; readonly read: (value: unknown, os: OsId) => Value },
): Readonly<Partial<Record<OsId, Value>>> {
  if (value === undefined) return {};
  if (!isObject(value)) throw bad(`${key} is not an object`);
  return Object.fromEntries(
    Object.entries(value).map(([os, one]) => {
      if (isOsId(os)) return [os, read(one, os)];
      const near = nearest(os, OS_IDS);
      throw bad(
        `${key}: "${os}" is not a known operating system${near === undefined ? '' : `, did you mean ${near}?`}`,
      );
    }),
  );
}

/** A non-empty list of repositories for one operating system. */
export function readRepositories(value: unknown, os: OsId, bad: Bad): readonly Repository[] {
  const where = `repositories: ${os}`;
  if (!Array.isArray(value) || value.length === 0) throw bad(`${where} has no list of repositories`);
  return value.map((one: unknown) => readRepository(one, os, (what) => bad(`${where}: ${what}`)));
}

function readRepository(value: unknown, os: OsId, bad: Bad): Repository {
  if (!isObject(value)) throw bad('a repository is not an object');
  const unknown = Object.keys(value).find((name) => !KEYS.includes(name));
  if (unknown !== undefined) throw bad(`unknown key "${unknown}"; known: ${KEYS.join(', ')}`);
  const { id, url, suites, components, key, form } = value;
  if (typeof id !== 'string' || !ID.test(id)) throw bad('id is not a name of a-z, 0-9 and "-"');
  if (typeof url !== 'string' || !URL_FORM.test(url)) throw bad(`${id}: url is not an https, http or file URL`);
  if (key !== undefined && (typeof key !== 'string' || /[\r\n]/.test(key))) throw bad(`${id}: key is not a string`);
  if (form !== undefined && form !== 'mirrorlist') throw bad(`${id}: form is not "mirrorlist"`);
  const apt = osRow(os).family === 'debian';
  for (const [name, list] of Object.entries({ suites, components })) {
    if (list === undefined) continue;
    if (!apt) throw bad(`${id}: ${name} are for apt only`);
    if (!isWordList(list)) throw bad(`${id}: ${name} is not a list of words`);
  }
  if (apt && suites === undefined) throw bad(`${id}: suites are required, such as ["jammy"] or ["./"]`);
  if (apt && form !== undefined) throw bad(`${id}: form is for rpm only`);
  return value as unknown as Repository;
}

function isWordList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && /^[^\s]+$/.test(item));
}

/** kURL's programs for installer specs, which read and write files (kurl.md 4.4, 8.2). */
import { dirname } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readFlags } from '../../spec/flags.ts';
import { installerYaml, mergeInstallers } from '../../spec/merge.ts';
import type { Installer } from '../../spec/installer.ts';
import { isEmptySpec, parseInstaller, parseMerged, type ParsedInstaller } from '../../spec/parse.ts';
import { SETTINGS } from '../../spec/settings.ts';
import { assignment, shellVariables } from '../../spec/variables.ts';
import { isJsonObject, type Json, type JsonObject } from '../../formats/yaml/yaml.ts';
import { readText, writeNewText } from './files.ts';
import { requiredFlag, parseGoFlags } from './go-flags.ts';

interface ValidSpec {
  readonly installer: Installer;
  readonly document: JsonObject;
}

/** Requires a spec without mistakes. */
function requireValid(tool: string, file: string, { installer, document, diagnostics }: ParsedInstaller): ValidSpec {
  if (installer !== undefined && document !== undefined) return { installer, document };
  throw new CurlewError('SPEC_INVALID', `${tool}: ${file}: not a valid installer spec`, { diagnostics });
}

async function readValid(tool: string, file: string): Promise<ValidSpec> {
  return requireValid(tool, file, parseInstaller(file, await readText(file)));
}

/** Writes a file that only its owner can read, because specs may contain secrets. */
async function writePrivate(path: string, text: string): Promise<void> {
  await makeFolder(dirname(path));
  await writeNewText(path, text, 0o600);
}

/** Variables that kURL creates for every spec; others exist only for settings in the spec. */
const KNOWN: ReadonlySet<string> = new Set(SETTINGS.flatMap(({ variable }) => variable ?? []));

/** `-i SPEC -b FILE`: writes all variables of a spec, sorted, for sourcing. */
export async function yamltobash(args: readonly string[]): Promise<string> {
  const flags = parseGoFlags('yamltobash', args, { values: ['i', 'b'], switches: [] });
  const { installer } = await readValid('yamltobash', requiredFlag('yamltobash', flags, 'i'));
  const variables = shellVariables(installer, new Map()).filter(([name, value]) => value !== '' || KNOWN.has(name));
  const lines = variables.map(([name, value]) => `${assignment(name, value)}\n`);
  await writePrivate(requiredFlag('yamltobash', flags, 'b'), lines.join(''));
  return '';
}

/** `-m OUT -b BASE -o OVERLAY`: merges two specs. If one is empty, copies the other unchanged. */
export async function installermerge(args: readonly string[]): Promise<string> {
  const flags = parseGoFlags('installermerge', args, { values: ['m', 'b', 'o'], switches: [] });
  const [base, overlay] = [requiredFlag('installermerge', flags, 'b'), requiredFlag('installermerge', flags, 'o')];
  const out = requiredFlag('installermerge', flags, 'm');
  const specs = [
    { file: base, text: await readText(base) },
    { file: overlay, text: await readText(overlay) },
  ] as const;
  const written = specs.filter((one) => !isEmptySpec(one));
  const [only] = written;
  if (only === undefined) return '';
  const { document } = requireValid('installermerge', `${base} and ${overlay}`, parseMerged(...specs));
  await writePrivate(out, written.length === 1 ? only.text.trim() : installerYaml(document));
  return '';
}

/** `-c SPEC -f FLAGS`: applies flags to the spec. */
export async function bashmerge(args: readonly string[]): Promise<string> {
  const flags = parseGoFlags('bashmerge', args, { values: ['c', 'f'], switches: [] });
  const file = requiredFlag('bashmerge', flags, 'c');
  const kurlFlags = requiredFlag('bashmerge', flags, 'f').split(/\s+/);
  const { settings } = readFlags(kurlFlags.filter((flag) => flag !== ''));
  const { document } = await readValid('bashmerge', file);
  const spec: Record<string, Record<string, Json>> = {};
  for (const { specName, field, value } of settings) {
    const added = Array.isArray(value)
      ? [...settingItems(document, specName, field), ...(value as readonly Json[])]
      : value;
    spec[specName] = { ...spec[specName], [field]: added };
  }
  const overlay = { apiVersion: document['apiVersion'] ?? '', kind: document['kind'] ?? '', spec };
  const merged = mergeInstallers(document, overlay).document;
  const { metadata = {} } = document;
  await writeNewText(file, installerYaml({ ...merged, metadata }));
  return '';
}

/** The items of a list setting, to which flags add. */
function settingItems({ spec }: JsonObject, specName: string, field: string): readonly Json[] {
  const settings = isJsonObject(spec) ? spec[specName] : undefined;
  const items = isJsonObject(settings) ? settings[field] : undefined;
  return Array.isArray(items) ? (items as readonly Json[]) : [];
}

/** `-i SPEC -o FILE`: writes the vendor's host preflights of a spec, if any. */
export async function vendorflights(args: readonly string[]): Promise<string> {
  const flags = parseGoFlags('vendorflights', args, { values: ['i', 'o'], switches: [] });
  const file = requiredFlag('vendorflights', flags, 'i');
  const { document } = await readValid('vendorflights', file);
  const { spec } = document;
  const kurl = isJsonObject(spec) ? spec['kurl'] : undefined;
  const preflights = isJsonObject(kurl) ? kurl['hostPreflights'] : undefined;
  if (preflights === undefined) return '';
  if (!isJsonObject(preflights) || preflights['apiVersion'] !== 'troubleshoot.sh/v1beta2') {
    throw new CurlewError(
      'SPEC_INVALID',
      `vendorflights: ${file}: kurl.hostPreflights is not a troubleshoot.sh/v1beta2`,
    );
  }
  await writePrivate(requiredFlag('vendorflights', flags, 'o'), installerYaml(preflights));
  return '';
}

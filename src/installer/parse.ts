/**
 * Installer spec (kURL's document, kurl.md 4.1) -> data with places. Pure; all findings at once, none thrown.
 */
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { isAddonName, isVersion } from '../core/ref.ts';
import { folderName, SECTION_NAMES, type Installer, type InstallerAddon, type InstallerSection } from './installer.ts';
import { isReservedVariable, variableName } from './variable-names.ts';
import { isJsonObject, readYaml, type Json, type JsonObject, type Path, type YamlText } from './yaml.ts';

const API_VERSIONS: readonly Json[] = ['cluster.kurl.sh/v1beta1', 'kurl.sh/v1beta1'];
const TOP_KEYS = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

export interface ParsedInstaller {
  /** Undefined when there is an error among the findings. */
  readonly installer: Installer | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

interface Findings {
  readonly placeOf: YamlText['placeOf'];
  readonly add: (severity: Diagnostic['severity'], code: string, path: Path, message: string, hint?: string) => void;
}

/** Reads an installer spec; `file` is its name for messages. */
export function parseInstaller(file: string, text: string): ParsedInstaller {
  const yaml = readYaml(file, text);
  const diagnostics: Diagnostic[] = [...yaml.diagnostics];
  const found: Findings = {
    placeOf: yaml.placeOf,
    add: (severity, code, path, message, hint) => {
      diagnostics.push({ code: `installer/${code}`, severity, message, place: yaml.placeOf(path), hint });
    },
  };
  const installer = hasErrors(diagnostics) ? undefined : readDocument(yaml.value, found);
  return {
    installer: hasErrors(diagnostics) ? undefined : installer,
    diagnostics: diagnostics.toSorted(compareDiagnostics),
  };
}

function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}

function readDocument(value: Json | undefined, found: Findings): Installer | undefined {
  if (!isJsonObject(value)) {
    found.add('error', 'document', [], 'not an installer spec: it must be a map with apiVersion, kind and spec');
    return undefined;
  }
  for (const key of Object.keys(value)) {
    if (TOP_KEYS.includes(key)) continue;
    const near = nearest(key, TOP_KEYS);
    found.add('warning', 'unknown-key', [key], `"${key}" means nothing here`, near && `did you mean "${near}"?`);
  }
  const { apiVersion, kind, metadata, spec } = value;
  if (apiVersion === undefined || !API_VERSIONS.includes(apiVersion)) {
    found.add('error', 'api-version', ['apiVersion'], 'apiVersion must be cluster.kurl.sh/v1beta1');
  }
  if (kind !== 'Installer') found.add('error', 'kind', ['kind'], 'kind must be Installer');
  const name = readName(metadata, found);
  if (!isJsonObject(spec)) {
    found.add('error', 'spec', ['spec'], 'spec must be a map of add-ons');
    return undefined;
  }
  return { name, ...readSpec(spec, found) };
}

function readName(metadata: Json | undefined, found: Findings): string | undefined {
  if (metadata === undefined) return undefined;
  const name = isJsonObject(metadata) ? metadata['name'] : metadata;
  if (name === undefined || (typeof name === 'string' && isJsonObject(metadata))) return name;
  found.add('error', 'metadata', ['metadata', 'name'], 'metadata must be a map, and its name a text');
  return undefined;
}

function readSpec(spec: JsonObject, found: Findings): Pick<Installer, 'addons' | 'sections'> {
  const addons: InstallerAddon[] = [];
  const sections: InstallerSection[] = [];
  const owners = new Map<string, string>();
  for (const [specName, settings] of Object.entries(spec)) {
    const path = ['spec', specName];
    if (!isJsonObject(settings)) {
      found.add('error', 'addon', path, `${specName} must be a map`, `write "${specName}: {version: latest}"`);
      continue;
    }
    refuseReserved(specName, settings, found);
    if (SECTION_NAMES.includes(specName)) {
      sections.push({ specName, settings });
      continue;
    }
    const addon = readAddon(specName, settings, found);
    if (addon === undefined) continue;
    const owner = owners.get(addon.name);
    if (owner !== undefined) found.add('error', 'twice', path, `${specName} and ${owner} are the same add-on`);
    owners.set(addon.name, specName);
    addons.push(addon);
  }
  return { addons, sections };
}

function readAddon(specName: string, content: JsonObject, found: Findings): InstallerAddon | undefined {
  const name = folderName(specName);
  const path = ['spec', specName];
  if (!/^[A-Za-z][A-Za-z0-9_-]*$/.test(specName) || !isAddonName(name)) {
    found.add('error', 'name', path, `"${specName.slice(0, 60)}" is not the name of an add-on`);
    return undefined;
  }
  const { version, s3Override, ...settings } = content;
  const requested = readVersion(specName, version, found);
  if (
    s3Override !== undefined &&
    !(typeof s3Override === 'string' && /^(?:(?:https?|s3):\/\/\S+)?$/.test(s3Override))
  ) {
    found.add(
      'error',
      's3-override',
      [...path, 's3Override'],
      's3Override must be the URL of a package, or s3://bucket/key',
    );
    return undefined;
  }
  if (requested === undefined) return undefined;
  const place = found.placeOf(path);
  return { specName, name, requested, settings, s3Override: s3Override === '' ? undefined : s3Override, place };
}

function readVersion(specName: string, version: Json | undefined, found: Findings): string | undefined {
  const path = ['spec', specName, 'version'];
  if (version === undefined || version === '') {
    found.add('error', 'version', path, `${specName} has no version`, 'write an exact one, "latest" or "1.2.x"');
    return undefined;
  }
  if (typeof version === 'number') {
    found.add(
      'error',
      'version',
      path,
      `${specName}: the version is read as the number ${version}`,
      'put it in quotes',
    );
    return undefined;
  }
  if (typeof version !== 'string' || !isVersion(version)) {
    found.add('error', 'version', path, `${specName}: this is not a version`);
    return undefined;
  }
  return version;
}

/** A setting becomes a shell variable; one that bash, the linker or this tool listens to must not come from a spec. */
function refuseReserved(specName: string, settings: JsonObject, found: Findings): void {
  for (const field of Object.keys(settings)) {
    const variable = variableName(specName, field);
    if (variable !== undefined && isReservedVariable(variable)) {
      found.add('error', 'variable', ['spec', specName, field], `the setting would become the variable ${variable}`);
    }
  }
}

/** Selects packages of a bundle that are not in its spec, and omits parts of the spec. */
import { resolve } from 'node:path';
import type { ExtraOptions, ExtraPackage } from '../../ship/bundle/extras.ts';
import { systemsOfPlan, type BundlePlan } from '../../ship/bundle/bundle-plan.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { OS_IDS, osFolders, type OsId } from '../../core/os.ts';
import { isAddonName, isVersion } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import { installerYaml } from '../../spec/merge.ts';
import { parseInstaller } from '../../spec/parse.ts';
import { isJsonObject, type JsonObject } from '../../formats/yaml/yaml.ts';
import type { Context } from '../../core/context.ts';
import type { ChoiceRequest } from '../../requests/bundle.ts';

export interface ReadSpec {
  readonly bytes: Uint8Array;
  readonly installer: Installer;
  readonly document: JsonObject;
}

/** Requested packages in addition to the spec. */
export function extrasOf({ with: also = [], upgradeFrom = [] }: ChoiceRequest): ExtraOptions {
  return {
    also: also.map((text) => parseWanted('--with', text.includes('@') ? text : `${text}@latest`)),
    upgradeFrom: upgradeFrom.map((text) =>
      parseWanted('--upgrade-from', text.includes('@') ? text : `kubernetes@${text}`),
    ),
  };
}

/** Systems that are also known by other names than those of their folders. */
const OTHER_NAMES = ['centos-7', 'rocky-8', 'rocky-9', 'rocky-10', 'almalinux-9', 'ol-8', 'ol-9', 'amazon-2'];

/** Package folders of the requested systems, in the order of the table; undefined: all. */
export function systemsOf({ os: names = [] }: ChoiceRequest): readonly OsId[] | undefined {
  if (names.length === 0) return undefined;
  const systems = new Set(
    names.flatMap((name) => {
      const folders = osFolders(name);
      if (folders.length > 0) return folders;
      const near = nearest(name, [...OS_IDS, ...OTHER_NAMES]);
      throw new CurlewError('USAGE', `--os ${JSON.stringify(name.slice(0, 40))}: unknown operating system`, {
        hint: `${near === undefined ? '' : `did you mean ${near}? `}known: ${OS_IDS.join(', ')}`,
      });
    }),
  );
  return OS_IDS.filter((id) => systems.has(id));
}

/** Warnings about requested systems that no package of the bundle has files for. */
export function idleSystems({ os = [] }: ChoiceRequest, plan: BundlePlan): readonly string[] {
  const present = systemsOfPlan(plan);
  const idle = os.filter((name) => !osFolders(name).some((folder) => present.has(folder)));
  return idle.map((name) => `--os ${name}: no package has files in ${osFolders(name).join(' or ')}`);
}

/** The folder with kURL's own scripts, if the bundle is for them. */
export function kurlScriptsOf(
  { layout, kurlScripts: scripts }: ChoiceRequest,
  { cwd }: Pick<Context, 'cwd'>,
): string | undefined {
  if ((layout === undefined) !== (scripts === undefined)) {
    throw new CurlewError('USAGE', '--layout kurl requires --kurl-scripts DIR, and vice versa');
  }
  return scripts === undefined ? undefined : resolve(cwd, scripts);
}

function parseWanted(option: string, text: string): ExtraPackage {
  const at = text.indexOf('@');
  const [name, version] = [text.slice(0, at), text.slice(at + 1)];
  if (isAddonName(name) && isVersion(version)) return { name, version };
  throw new CurlewError('USAGE', `${option} ${JSON.stringify(text.slice(0, 200))}: not a name and a version`, {
    hint: `${option} kubernetes@1.28.x`,
  });
}

/**
 * The spec without some of its add-ons. A bundle contains the spec of its packages, so it is written again and loses comments.
 * `SPEC_INVALID` if an add-on is not in it.
 */
export function withoutAddons(input: ReadSpec, names: readonly string[], path: string): ReadSpec {
  if (names.length === 0) return input;
  const { installer, document } = input;
  const removed = names.map((name) => {
    const addon = installer.addons.find((one) => one.name === name || one.specName === name);
    if (addon !== undefined) return addon.specName;
    const near = nearest(
      name,
      installer.addons.map((one) => one.name),
    );
    throw new CurlewError('SPEC_INVALID', `--without ${name}: ${path} has no such add-on`, {
      hint:
        near === undefined
          ? `it has: ${installer.addons.map((one) => one.specName).join(', ')}`
          : `did you mean ${near}?`,
    });
  });
  const { spec } = document;
  const rest = Object.entries(isJsonObject(spec) ? spec : {}).filter(([key]) => !removed.includes(key));
  const text = installerYaml({ ...document, spec: Object.fromEntries(rest) });
  const parsed = parseInstaller(path, text);
  if (parsed.installer === undefined || parsed.document === undefined) {
    throw new CurlewError('SPEC_INVALID', `${path} is not a valid installer spec without ${names.join(', ')}`, parsed);
  }
  if (parsed.installer.addons.length === 0) {
    throw new CurlewError('SPEC_INVALID', `--without ${names.join(', ')}: ${path} has no other add-on`, {
      hint: 'keep at least one add-on of the spec, or write a spec of the add-ons that the bundle needs',
    });
  }
  return { bytes: Buffer.from(text), installer: parsed.installer, document: parsed.document };
}

/** Opens the packages and the installer spec for a command on a node. */
import { arch } from 'node:os';
import { join, resolve } from 'node:path';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { CurlewError, noSuchFile } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { INSTALLER_YAML } from '../../core/layout.ts';
import type { Arch } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import { parseInstaller, parseMerged, withoutNameGuesses, type SpecText } from '../../spec/parse.ts';
import type { JsonObject } from '../../formats/yaml/yaml.ts';
import { readGivenFile } from '../../platform/files/state-file.ts';
import type { Context } from '../../core/context.ts';
import { buildsIn, buildsSource } from './builds-source.ts';
import { bundleSource, unpackedSource, type InstallSource } from './install-source.ts';
import { SEEN_RELEASES } from '../open/seen-versions.ts';
import { trustOf } from '../open/trust.ts';
import type { SourceRequest } from '../../requests/node.ts';

/**
 * Opens the packages that a request names; `directory` is the install folder. `remember`: record the version of a signed store on
 * this node; false for read-only commands.
 */
export async function openSource(
  request: SourceRequest & { readonly installerText?: string | undefined; readonly root?: string | undefined },
  context: Context,
  { directory, remember }: { readonly directory: string; readonly remember: boolean },
): Promise<InstallSource> {
  const { cwd, report, signal } = context;
  const { bundle, dir, from: places = [] } = request;
  const sources = [bundle, dir, places[0]].filter((one) => one !== undefined);
  const release = request.release;
  if (sources.length === 0) throw new CurlewError('USAGE', 'one of --bundle, --dir and --from is required');
  if (sources.length > 1) throw new CurlewError('USAGE', 'only one of --bundle, --dir and --from can be used');
  if (release !== undefined && places.length === 0) throw new CurlewError('USAGE', '--release requires --from');
  const ownArch = hostArch();
  const trust = await trustOf(request, context, { role: 'bundle', directory });
  const common = { cwd, arch: ownArch, trust, report, signal };
  if (bundle !== undefined) return bundleSource(bundle, { ...common, directory });
  if (dir !== undefined) return unpackedSource(dir, { ...common, directory, stays: request.root !== undefined });
  if (request.signature !== undefined)
    throw new CurlewError('USAGE', '--signature is for bundles: a store contains its own');
  if (request.signedAs !== undefined)
    throw new CurlewError('USAGE', '--signed-as is for bundles: a store contains its own');
  const [first = ''] = places;
  const builds = release === undefined && places.length === 1 ? await buildsIn(first, cwd) : undefined;
  if (builds !== undefined) {
    const hasSpec = (request.installer ?? request.installerText) !== undefined;
    return buildsSource(builds, { ...common, from: first, hasSpec });
  }
  // Loaded on use: a node without internet has a bundle.
  const { releaseTrust } = await import('../open/release-trust.ts');
  const { releaseSource } = await import('./store-source.ts');
  const seen = { addresses: places, file: join(directory, SEEN_RELEASES), remember };
  const allowOlder = request.allowDowngrade === true;
  const held = trust === undefined ? undefined : { ...releaseTrust(trust, context, seen), allowOlder };
  return releaseSource({ places, release, arch: ownArch, directory, trust: held }, request, context);
}

/** The architecture of packages for a machine, by Node's name of it; by default, for this one. */
export function hostArch(machine: string = arch()): Arch {
  if (machine === 'x64') return 'amd64';
  if (machine === 'arm64') return 'arm64';
  throw new CurlewError('UNSUPPORTED', `cannot install: this machine is ${machine}; packages are for amd64 and arm64`, {
    hint: 'install on a machine with one of these; this one can build, publish and bundle',
  });
}

/** The text of the spec that the request names, or of the one in the source. */
export async function installerText(
  request: Pick<SourceRequest, 'installer'>,
  { cwd }: Context,
  source: Pick<InstallSource, 'installerText'>,
): Promise<string> {
  const path = request.installer;
  const text = path === undefined ? source.installerText : await readGivenFile(resolve(cwd, path), INSTALLER_LIMIT);
  if (text !== undefined) return text;
  if (path !== undefined) throw noSuchFile(`read ${path}`);
  throw new CurlewError('USAGE', 'the source contains no installer spec: specify one with --installer FILE');
}

/** Parses and merges a base and an overlay, at least one of which is given. Throws `SPEC_INVALID`; reports warnings. */
export function readRunSpec(
  request: Pick<SourceRequest, 'installer'>,
  { report }: Pick<Context, 'report'>,
  base: string | undefined,
  overlay: SpecText | undefined,
): { readonly installer: Installer; readonly document: JsonObject } {
  const below = { file: request.installer ?? INSTALLER_YAML, text: base ?? '' };
  const whole = base === undefined && overlay !== undefined ? overlay : below;
  const merged = base !== undefined && overlay !== undefined;
  const read = merged ? parseMerged(below, overlay) : parseInstaller(whole.file, whole.text);
  const { installer, document } = read;
  const diagnostics = withoutNameGuesses(read.diagnostics);
  if (installer === undefined || document === undefined) {
    const file = merged ? `${below.file} and ${overlay.file}` : whole.file;
    throw new CurlewError('SPEC_INVALID', `cannot read ${file}: not a valid installer spec`, { diagnostics });
  }
  noteWarnings(report, diagnostics);
  return { installer, document };
}

/** Reports what is no error. Remarks about a file are for `installer validate`; those about an argument are for its author. */
export function noteWarnings(report: Report, diagnostics: CurlewError['diagnostics']): void {
  for (const { severity, place, message, hint } of diagnostics) {
    const isArgument = place.line === 0;
    if (severity === 'info' && !isArgument) continue;
    const where = isArgument ? place.file : `${place.file}:${place.line}:${place.column}`;
    const text = `${where}: ${message}${hint === undefined ? '' : ` (${hint})`}`;
    report({ type: 'note', level: severity === 'info' ? 'info' : 'warning', text });
  }
}

/** Images of other registries that a spec names beside those of its packages (kurl.md 5.2). Pure. */
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { formatImageRef, parseImageRef, type ImageRef } from '../core/image-ref.ts';
import type { Installer } from '../spec/installer.ts';

/** Registries that anybody may name, by the domain that somebody has registered: a host of it, or below it. */
const ALLOWED: readonly string[] = ['docker.io', 'gcr.io', 'ghcr.io', 'azurecr.io', 'ttl.sh'];
/** Where anybody can register below a domain that is no registry of its own, as a whole. */
const ALLOWED_ECR = /^[0-9]{12}\.dkr\.ecr\.us-east-1\.amazonaws\.com$/;

/** True for a registry of the list, of `more`, or below one of them; `host` may have a port. */
export function isAllowedRegistry(host: string, more: readonly string[]): boolean {
  const name = host.toLowerCase();
  if (more.includes(name)) return true;
  const bare = name.replace(/:[0-9]{1,5}$/, '');
  if (ALLOWED_ECR.test(bare)) return true;
  return [...ALLOWED, ...more].some((known) => bare === known || bare.endsWith(`.${known}`));
}

/**
 * The images that take the place of others, of `ekco.podImageOverrides` (`original=other`), each once. Entries that are
 * none, and registries that are not allowed, are `SPEC_INVALID`, all at once.
 */
export function imageOverrides({ addons }: Installer, more: readonly string[]): readonly string[] {
  const ekco = addons.find(({ name }) => name === 'ekco');
  const entries = ekco?.settings['podImageOverrides'];
  if (ekco === undefined || entries === undefined) return [];
  const found = new Set<string>();
  const problems: string[] = [];
  for (const entry of Array.isArray(entries) ? entries : [entries]) {
    const read = typeof entry === 'string' ? readOverride(entry, more) : 'it is no text';
    if (typeof read === 'string') problems.push(`${JSON.stringify(entry)?.slice(0, 200)}: ${read}`);
    else found.add(formatImageRef(read));
  }
  if (problems.length === 0) return [...found];
  throw new CurlewError('SPEC_INVALID', `ekco.podImageOverrides: ${problems.join('; ')}`, {
    diagnostics: problems.map((message): Diagnostic => {
      return { code: 'installer/image-override', severity: 'error', message, place: ekco.place };
    }),
  });
}

/** The images of `helm.additionalImages`, each once; `SPEC_INVALID` as with {@link imageOverrides}. */
export function helmImages({ sections }: Installer, more: readonly string[]): readonly string[] {
  const entries = sections.find(({ specName }) => specName === 'helm')?.settings['additionalImages'] ?? [];
  const found = new Set<string>();
  const problems: string[] = [];
  for (const entry of Array.isArray(entries) ? entries : [entries]) {
    const read = typeof entry === 'string' ? readAllowed(entry, more) : 'it is no text';
    if (typeof read === 'string') problems.push(`${JSON.stringify(entry)?.slice(0, 200)}: ${read}`);
    else found.add(formatImageRef(read));
  }
  if (problems.length === 0) return [...found];
  throw new CurlewError('SPEC_INVALID', `helm.additionalImages: ${problems.join('; ')}`);
}

function readOverride(entry: string, more: readonly string[]): ImageRef | string {
  const [original = '', other, ...rest] = entry.split('=');
  if (other === undefined || rest.length > 0) return 'an override is written ORIGINAL=OTHER';
  for (const text of [original, other]) {
    const ref = parseImageRef(text.trim());
    if (typeof ref === 'string') return ref;
  }
  return readAllowed(other, more);
}

function readAllowed(text: string, more: readonly string[]): ImageRef | string {
  const ref = parseImageRef(text.trim());
  if (typeof ref === 'string') return ref;
  if (isAllowedRegistry(ref.registry, more)) return ref;
  return `${ref.registry} is not among the registries that may be named (${ALLOWED.join(', ')}); imageRegistries of the configuration adds others`;
}

/** The table of directives: every known keyword has a row here. */
import type { Find } from './rules.ts';
import type { DirectiveRequest, Directive } from './directive.ts';
import { asset, type AssetRequest } from './directives/asset.ts';
import { dockerout, type DockeroutRequest } from './directives/dockerout.ts';
import { image, type ImageRequest } from './directives/image.ts';
import { osPackageDirectives, type OsPackagesRequest } from './directives/os-packages.ts';
import type { BuilderStep } from './step.ts';

export type FetchedSource = ImageRequest | AssetRequest | OsPackagesRequest | DockeroutRequest;

/** The one cast of this table: drops the request type of each row. */
function row<Own extends DirectiveRequest>(directive: Directive<Own>): Directive<FetchedSource> {
  return directive as unknown as Directive<FetchedSource>;
}

/** By keyword, in the order of the reference page. */
export const DIRECTIVES: ReadonlyMap<string, Directive<FetchedSource>> = new Map(
  [row(image), row(asset), ...osPackageDirectives.map(row), row(dockerout)].map((directive) => [
    directive.keyword,
    directive,
  ]),
);

/** One row of each kind of request, in planning order. */
const KINDS: ReadonlyMap<FetchedSource['kind'], Directive<FetchedSource>> = new Map(
  [...DIRECTIVES.values()].map((directive) => [directive.kind, directive]),
);

/** Runs the rules for all requests of a kind. */
export function checkRequests(requests: readonly FetchedSource[], find: Find): void {
  for (const [kind, directive] of KINDS)
    directive.check(
      requests.filter((request) => request.kind === kind),
      find,
    );
}

/**
 * The steps that fulfill a Manifest: images, assets, host packages (one step for each system and output), container builds,
 * each in the Manifest's order. The same Manifest gives the same steps. Pure and JSON-safe.
 */
export function planManifest({ requests }: { readonly requests: readonly FetchedSource[] }): readonly BuilderStep[] {
  return [...KINDS].flatMap(([kind, directive]) => directive.plan(requests.filter((request) => request.kind === kind)));
}

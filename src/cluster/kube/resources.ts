/** The kinds of objects that an API server serves, and the paths of their objects. */
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { checked } from '../../core/schema.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import type { KubeApi } from './api.ts';
import { openCalls, type Call, type CallOptions } from './call.ts';
import { apiPath, type ApiPath } from './path.ts';

/** A kind as objects name it. */
export interface ApiKind {
  /** `v1`, or `apps/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
}

/** How the objects of a kind are requested. */
export interface Resource extends ApiKind {
  /** `deployments` */
  readonly plural: string;
  readonly namespaced: boolean;
}

export interface Served extends Resource {
  /** Such as `list` and `delete`. */
  readonly verbs: readonly string[];
}

export interface Discovery {
  /** Each version of each kind, the preferred version of a group first. */
  readonly served: readonly Served[];
  /** Group versions that the server names and cannot serve now: their aggregated API does not answer. */
  readonly broken: readonly string[];
}

/** Also for objects: the group of `apps/v1` is `apps`; that of `v1` is empty. */
export function groupOf({ apiVersion }: Pick<ApiKind, 'apiVersion'>): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}

const AGGREGATED = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
);
const ACCEPT = [...AGGREGATED, 'application/json'].join(',');
const GROUPS_AT_ONCE = 8;

const verbs = v.optional(v.array(v.string()), []);
const aggregatedSchema = v.object({
  kind: v.literal('APIGroupDiscoveryList'),
  items: v.array(
    v.object({
      metadata: v.optional(v.object({ name: v.optional(v.string(), '') }), {}),
      versions: v.optional(
        v.array(
          v.object({
            version: v.string(),
            freshness: v.optional(v.string()),
            resources: v.optional(
              v.array(
                v.object({
                  resource: v.string(),
                  responseKind: v.optional(v.nullable(v.object({ kind: v.string() }))),
                  scope: v.string(),
                  verbs,
                }),
              ),
              [],
            ),
          }),
        ),
        [],
      ),
    }),
  ),
});
const groupsSchema = v.object({
  kind: v.literal('APIGroupList'),
  groups: v.array(
    v.object({
      versions: v.array(v.object({ groupVersion: v.string() })),
      preferredVersion: v.optional(v.object({ groupVersion: v.string() })),
    }),
  ),
});
const versionsSchema = v.object({ kind: v.literal('APIVersions'), versions: v.array(v.string()) });
const resourcesSchema = v.object({
  resources: v.optional(v.array(v.object({ name: v.string(), kind: v.string(), namespaced: v.boolean(), verbs })), []),
});

/**
 * The kinds that the server serves: two requests since Kubernetes 1.26, one for each group version before. A group version that is not
 * available now is `broken`, never an error.
 */
export async function discover(api: KubeApi, options: CallOptions): Promise<Discovery> {
  const parts = [await discoverRoot(api, apiPath`/api`, options), await discoverRoot(api, apiPath`/apis`, options)];
  return { served: parts.flatMap(({ served }) => served), broken: parts.flatMap(({ broken }) => broken) };
}

async function discoverRoot(api: KubeApi, path: ApiPath, options: CallOptions): Promise<Discovery> {
  const doing = 'list the kinds of the cluster';
  const answer = await openCalls(api, options)(doing, { verb: 'get', path, accept: ACCEPT });
  const value = answer.outcome === 'done' ? answer.value : undefined;
  if (v.is(aggregatedSchema, value)) return fromAggregated(v.parse(aggregatedSchema, value));
  const versions = v.is(versionsSchema, value) ? value.versions : groupVersions(value, doing);
  const broken: string[] = [];
  const byVersion = new Map<string, readonly Served[]>();
  const discoverOne = async (apiVersion: string, { signal }: Pick<CallOptions, 'signal'>): Promise<void> => {
    // An aggregated API that is down would be waited for.
    const resources = await discoverVersion(openCalls(api, { patienceMs: 0, signal }), apiVersion);
    if (resources === undefined) broken.push(apiVersion);
    else byVersion.set(apiVersion, resources);
  };
  await eachLimited(versions, discoverOne, { width: GROUPS_AT_ONCE, signal: options.signal });
  return { served: versions.flatMap((apiVersion) => byVersion.get(apiVersion) ?? []), broken };
}

function groupVersions(value: unknown, doing: string): readonly string[] {
  const { groups } = checked(
    groupsSchema,
    value,
    (what) => new CurlewError('CLUSTER_FAILED', `cannot ${doing}: ${what}`),
  );
  return groups.flatMap(({ versions, preferredVersion }) => {
    const all = versions.map(({ groupVersion }) => groupVersion);
    const first = preferredVersion?.groupVersion;
    return first === undefined ? all : [first, ...all.filter((one) => one !== first)];
  });
}

function fromAggregated({ items }: v.InferOutput<typeof aggregatedSchema>): Discovery {
  const served: Served[] = [];
  const broken: string[] = [];
  for (const { metadata, versions } of items) {
    for (const { version, freshness, resources } of versions) {
      const apiVersion = metadata.name === '' ? version : `${metadata.name}/${version}`;
      if (freshness === 'Stale') broken.push(apiVersion);
      for (const { resource, responseKind, scope, verbs: allowed } of resources) {
        if (responseKind === undefined || responseKind === null) continue;
        const kind = { apiVersion, kind: responseKind.kind };
        served.push({ ...kind, plural: resource, namespaced: scope === 'Namespaced', verbs: allowed });
      }
    }
  }
  return { served, broken };
}

/** Undefined if the group version is not served now. */
async function discoverVersion(call: Call, apiVersion: string): Promise<readonly Served[] | undefined> {
  const answer = await call(`list the kinds of ${apiVersion}`, { verb: 'get', path: versionPath(apiVersion) }).catch(
    (error: unknown) => {
      if (error instanceof CurlewError) return undefined;
      throw error;
    },
  );
  if (answer?.outcome !== 'done' || !v.is(resourcesSchema, answer.value)) return undefined;
  return v
    .parse(resourcesSchema, answer.value)
    .resources.filter(({ name }) => !name.includes('/'))
    .map(({ name, kind, namespaced, verbs: allowed }) => ({
      apiVersion,
      kind,
      plural: name,
      namespaced,
      verbs: allowed,
    }));
}

function versionPath(apiVersion: string): ApiPath {
  const [group, version] = apiVersion.split('/');
  return version === undefined ? apiPath`/api/${apiVersion}` : apiPath`/apis/${group ?? ''}/${version}`;
}

/** The objects of a kind, of one namespace or of all. */
export function collectionPath({ apiVersion, plural, namespaced }: Resource, namespace?: string): ApiPath {
  const base = versionPath(apiVersion);
  const of = namespaced && namespace !== undefined ? apiPath`/namespaces/${namespace}/${plural}` : apiPath`/${plural}`;
  return `${base}${of}` as ApiPath;
}

export function objectPath(
  resource: Resource,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name: string },
): ApiPath {
  return `${collectionPath(resource, namespace)}${apiPath`/${name}`}` as ApiPath;
}

/** The path with query parameters; undefined ones are left out. */
export function withQuery(path: ApiPath, query: Readonly<Record<string, string | number | undefined>>): ApiPath {
  const parameters = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)] as [string, string]],
  );
  return (parameters.length === 0 ? path : `${path}?${new URLSearchParams(parameters).toString()}`) as ApiPath;
}

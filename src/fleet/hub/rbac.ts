/** Roles, and whom they are given to, as objects. Pure. */

export const RBAC = 'rbac.authorization.k8s.io';

type Role = 'Role' | 'ClusterRole';

export interface Right extends Readonly<Record<string, unknown>> {
  readonly apiVersion: string;
  readonly kind: Role | `${Role}Binding`;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

/** A rule of a role. */
export function may(
  apiGroup: string,
  resources: readonly string[],
  verbs: readonly string[],
  names?: readonly string[],
) {
  return { apiGroups: [apiGroup], resources, ...(names && { resourceNames: names }), verbs };
}

export function role(kind: Role, metadata: Right['metadata'], rules: readonly object[]): Right {
  return { apiVersion: `${RBAC}/v1`, kind, metadata, rules };
}

export function bound(
  kind: `${Role}Binding`,
  metadata: Right['metadata'],
  to: { readonly kind: Role; readonly name: string },
  subjects: readonly object[],
): Right {
  return { apiVersion: `${RBAC}/v1`, kind, metadata, roleRef: { apiGroup: RBAC, ...to }, subjects };
}

/** A role, and the binding of the same name by which someone has it. */
export function granted(
  kind: Role,
  metadata: Right['metadata'],
  rules: readonly object[],
  subjects: readonly object[],
): readonly Right[] {
  return [role(kind, metadata, rules), bound(`${kind}Binding`, metadata, { kind, name: metadata.name }, subjects)];
}

export function rbacResource(kind: Right['kind'], namespaced: boolean) {
  return { apiVersion: `${RBAC}/v1`, kind, plural: `${kind.toLowerCase()}s`, namespaced };
}

/** How it is requested. */
export function resourceOfRight({ kind, metadata }: Right) {
  return rbacResource(kind, metadata.namespace !== undefined);
}

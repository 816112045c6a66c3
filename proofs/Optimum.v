(** The scalar heart of replace-one: rows of norm 1 with cosine s, responses A and B of opposite
    sign. *)

Require Import Reals Lra Psatz.
From Tacit Require Import Formulas.
Local Open Scope R_scope.

Lemma larger_left (a b : R) : a <= larger reals a b.
Proof. unfold larger. cbn. destruct (Rle_dec a b); lra. Qed.

Lemma larger_right (a b : R) : b <= larger reals a b.
Proof. unfold larger. cbn. destruct (Rle_dec a b); lra. Qed.

Lemma larger_is_one (P : R -> Prop) (a b : R) : P a -> P b -> P (larger reals a b).
Proof. unfold larger. cbn. now destruct (Rle_dec a b). Qed.

Definition spread (W V s A B : R) : R :=
  2 - 2 * (s * s) + W * W * (A * A + B * B + 2 * (A * B * s)) + V * V * Rsqr (A * A - B * B).

(** The larger response may as well be 1. *)
Lemma spread_extreme (W V s A B : R) : 0 <= s -> 0 <= B <= A -> A <= 1 ->
  spread W V s A B <= spread W V s 1 B.
Proof.
  intros cosine [least order] most. unfold spread, Rsqr.
  assert (A * A + 2 * (A * B * s) <= 1 * 1 + 2 * (1 * B * s)).
  { assert (0 <= B * s) by nra. nra. }
  assert (0 <= A * A - B * B <= 1 * 1 - B * B) by nra.
  assert ((A * A - B * B) * (A * A - B * B) <= (1 * 1 - B * B) * (1 * 1 - B * B)) by nra.
  pose proof (Rle_0_sqr W). pose proof (Rle_0_sqr V). unfold Rsqr in *. nra.
Qed.

Lemma expand (W V t : R) :
  parallel_at reals W V t = W * W * ((1 + t) * (1 + t)) + V * V * ((1 - t * t) * (1 - t * t)).
Proof. unfold parallel_at, square. cbn. ring. Qed.

(** The stationary point of [parallel_at]. *)
Lemma smaller_response_is (W V : R) :
  2 * (W * W) < V * V -> let T := smaller_response reals W V in 0 <= T <= 1 / 2 /\
    W * W = 2 * (T * (1 - T)) * (V * V).
Proof.
  intros heavy T. assert (0 < V * V) by nra. set (q := 2 * (W * W) / (V * V)).
  assert (range : 0 <= q < 1).
  { unfold q. split.
    - apply Rmult_le_pos; [nra |]. left. now apply Rinv_0_lt_compat.
    - apply Rmult_lt_reg_r with (V * V); [lra |]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (scale : 2 * (W * W) = q * (V * V)) by (unfold q; field; nra).
  unfold T, smaller_response. cbn [root over times minus whole reals]. fold q. clearbody q.
  assert (sqrt (1 - q) * sqrt (1 - q) = 1 - q) as product by (apply sqrt_sqrt; lra).
  pose proof (sqrt_pos (1 - q)). assert (sqrt (1 - q) <= 1) by nra.
  split; [lra |]. replace q with (1 - sqrt (1 - q) * sqrt (1 - q)) in scale at 1 by lra. lra.
Qed.

(** Rows that are parallel: [parallel_at] over all t. *)
Lemma parallel_bound (W V t : R) : 0 <= t <= 1 -> parallel_at reals W V t <= parallel reals W V.
Proof.
  intros share. unfold parallel. cbn [at_most times whole reals].
  destruct (Rle_dec (V * V) (2 * (W * W))) as [light | heavy].
  - rewrite expand.
    assert (0 <= (1 - t) * (W * W * (3 + t) - V * V * (1 - t) * (1 + t) * (1 + t))).
    { apply Rmult_le_pos; [lra |].
      assert (V * V * ((1 - t) * (1 + t) * (1 + t)) <= 2 * (W * W) * ((1 - t) * (1 + t) * (1 + t))).
      { apply Rmult_le_compat_r; [| lra]. apply Rmult_le_pos; [| lra]. apply Rmult_le_pos; lra. }
      assert (0 <= W * W * (1 - t + 2 * (t * t) + 2 * (t * t * t))).
      { apply Rmult_le_pos; [apply Rle_0_sqr |]. assert (0 <= t * t * t)
          by (apply Rmult_le_pos; nra). nra. }
      lra. }
    lra.
  - assert (2 * (W * W) < V * V) as beyond by lra.
    destruct (smaller_response_is W V beyond) as [half width].
    set (T := smaller_response reals W V) in *. change (number reals) with R in T. clearbody T.
    assert (0 < V * V) by nra.
    destruct (Rle_dec t (1 - T)) as [before | after].
    + eapply Rle_trans; [| apply larger_right]. rewrite !expand, width.
      assert (0 <= V * V * (Rsqr (t - T) * (2 - 2 * T - Rsqr (t + T)))) as gap.
      { apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; [apply Rle_0_sqr |]. unfold Rsqr. nra. }
      unfold Rsqr in gap. lra.
    + eapply Rle_trans; [| apply larger_left]. rewrite expand, width.
      assert (0
        <= V * V * ((1 - t) * (2 * (T * (1 - T)) * (3 + t) - (1 - t) * ((1 + t) * (1 + t)))))
          as gap.
      { apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; [lra |].
        assert ((1 - t) * ((1 + t) * (1 + t)) <= (1 - t) * (3 + t))
          by (apply Rmult_le_compat_l; nra).
        assert (1 - t <= 2 * (T * (1 - T))) by nra.
        assert ((1 - t) * (3 + t) <= 2 * (T * (1 - T)) * (3 + t)) by (apply Rmult_le_compat_r; lra).
        lra. }
      lra.
Qed.

(** No two rows of norm 1 are further apart than [diameter] says. *)
Theorem spread_bound (W V s A B : R) : 0 <= s <= 1 -> 0 <= A <= 1 -> 0 <= B <= 1 ->
  spread W V s A B <= diameter reals W V.
Proof.
  assert (ordered : forall A B, 0 <= s <= 1 -> 0 <= B <= A -> A <= 1 ->
    spread W V s A B <= diameter reals W V).
  2: { intros cosine first second. destruct (Rle_dec B A); [apply ordered; lra |].
       replace (spread W V s A B) with (spread W V s B A) by (unfold spread, Rsqr; ring).
       apply ordered; lra. }
  clear A B. intros A t cosine order most. eapply Rle_trans; [now apply spread_extreme |].
  assert (0 <= t <= 1) as share by lra. clear A order most.
  pose proof (Rle_0_sqr V) as heaviness. unfold Rsqr in heaviness.
  (* The best cosine, were there no limit to it. *)
  assert (free : spread W V s 1 t <= 2 + W * W * (1 + t * t) + W * W * (W * W) / 2 * (t * t)
    + V * V * Rsqr (1 - t * t)).
  { unfold spread, Rsqr. pose proof (Rle_0_sqr (2 * s - W * W * t))
      as gap. unfold Rsqr in gap. lra. }
  unfold diameter. cbn [at_most times whole reals]. destruct (Rle_dec (W * W) 2) as [low | high].
  - eapply Rle_trans; [exact free |]. clear free.
    apply Rle_trans with ((1 - t * t) * one_zero reals W V + t * t * opposite reals W).
    + unfold one_zero, opposite, Rsqr. cbn. assert (0 <= V * V * (t * t * (1 - t * t))); [| lra].
      apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; nra.
    + pose proof (larger_left (opposite reals W) (one_zero reals W V)) as left.
      pose proof (larger_right (opposite reals W) (one_zero reals W V)) as right.
      assert (0 <= t * t <= 1) by nra. nra.
  - assert (parallel_at reals W V t <= parallel reals W V) as here by now apply parallel_bound.
    destruct (Rle_dec (W * W * t) 2) as [inner | outer].
    + (* Convex in t² between t = 0 and t = 2/W², where the best cosine is 1. *)
      eapply Rle_trans; [exact free |]. clear free.
      set (T := 2 / (W * W)).
      assert (W * W * T = 2) as meet by (unfold T; field; nra).
      assert (0 < T < 1) as inside by nra.
      assert (t <= T) as ahead by nra.
      pose proof (parallel_bound W V T ltac:(lra)) as there. rewrite expand in there.
      pose proof (larger_left (parallel reals W V) (one_zero reals W V)) as left.
      pose proof (larger_right (parallel reals W V) (one_zero reals W V)) as right.
      set (P := t * t / (T * T)).
      assert (t * t = P * (T * T)) as share' by (unfold P; field; lra).
      assert (0 <= P <= 1) as mixture.
      { split; [apply Rmult_le_pos; [nra | left; apply Rinv_0_lt_compat; nra] |].
        apply Rmult_le_reg_r with (T * T); [nra |]. rewrite <- share'. nra. }
      clearbody T P.
      apply Rle_trans
        with ((1 - P) * one_zero reals W V
          + P * (W * W * ((1 + T) * (1 + T)) + V * V * ((1 - T * T) * (1 - T * T)))).
      * unfold one_zero, Rsqr. cbn. rewrite share'.
        replace (W * W * (W * W) / 2 * (P * (T * T))) with (W * W * T * (W * W * T) / 2 * P)
          by field.
        replace (W * W * ((1 + T) * (1 + T))) with (W * W + 2 * (W * W * T) + W * W * T * T)
          by ring.
        replace (W * W * (1 + P * (T * T))) with (W * W + P * (W * W * T * T)) by ring.
        rewrite meet.
        assert (0 <= V * V * (P * (1 - P) * (T * T * (T * T)))).
        { apply Rmult_le_pos; [lra |]. apply Rmult_le_pos; [nra |]. apply Rmult_le_pos; nra. }
        lra.
      * nra.
    + eapply Rle_trans; [| apply larger_left]. eapply Rle_trans; [| exact here]. rewrite expand.
      unfold spread, Rsqr.
      assert (0 <= (1 - s) * (2 * (W * W * t) - 2 * (1 + s))) by (apply Rmult_le_pos; lra). nra.
Qed.

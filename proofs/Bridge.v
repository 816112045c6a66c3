(** From proof to program: at rational points the formulas can be evaluated, and the value is that
    of the theorems. *)

Require Import Reals Lra Psatz QArith Qreals ZArith List Lia.
From Tacit Require Import Formulas.
Import ListNotations.

Local Open Scope R_scope.

Lemma whole_agrees z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R. cbn. field. Qed.

Lemma at_most_agrees (a b : Q) : at_most rationals a b = at_most reals (Q2R a) (Q2R b).
Proof.
  cbn. destruct (Rle_dec (Q2R a) (Q2R b)) as [under | over].
  - apply Qle_bool_iff. now apply Rle_Qle.
  - apply Bool.not_true_is_false. intros under. apply over. apply Qle_Rle. now apply Qle_bool_iff.
Qed.

Lemma over_agrees (a b : Q) : Q2R b <> 0 -> Q2R (a / b) = Q2R a / Q2R b.
Proof. intros some. apply Q2R_div. intros zero. apply some. rewrite (Qeq_eqR _ _ zero). unfold Q2R.
cbn. lra. Qed.

Lemma root_agrees (q : Q) : Qeq_bool (rational_root q * rational_root q) q = true ->
  Q2R (rational_root q) = sqrt (Q2R q).
Proof.
  intros exact. apply Qeq_bool_iff, Qeq_eqR in exact. rewrite Q2R_mult in exact. rewrite <- exact.
  symmetry. apply sqrt_square.
  unfold rational_root, Q2R. cbn [Qnum Qden]. apply Rmult_le_pos.
  - apply IZR_le. apply Z.sqrt_nonneg.
  - left. apply Rinv_0_lt_compat. apply IZR_lt. reflexivity.
Qed.

Definition to_reals (p : weights rationals) : weights reals :=
  Build_weights reals (Q2R (w p)) (Q2R (v p)) (Q2R (c p)) (Q2R (e p)).

Ltac agree := cbn [number whole plus minus times over root at_most rationals reals];
  repeat first [rewrite Q2R_plus | rewrite Q2R_minus | rewrite Q2R_mult | rewrite whole_agrees
               | rewrite over_agrees by (rewrite ?Q2R_mult, ?whole_agrees; lra || nra
                 || assumption)].

Lemma larger_agrees (a b : Q) : Q2R (larger rationals a b) = larger reals (Q2R a) (Q2R b).
Proof. unfold larger. rewrite at_most_agrees. now destruct (at_most reals (Q2R a) (Q2R b)). Qed.

Lemma longest_agrees (W V : Q) : Q2R (longest rationals W V) = longest reals (Q2R W) (Q2R V).
Proof. unfold longest. now agree. Qed.

(** The one root in [diameter] must be a rational number, where it is needed. *)
Definition exact_root (W V : Q) : bool :=
  let q := Qminus (inject_Z 1) (Qdiv (Qmult (inject_Z 2) (Qmult W W)) (Qmult V V)) in
  orb (Qle_bool (Qmult W W) (inject_Z 2))
    (orb (Qle_bool (Qmult V V) (Qmult (inject_Z 2) (Qmult W W)))
      (Qeq_bool (Qmult (rational_root q) (rational_root q)) q)).

Lemma diameter_agrees (W V : Q) : exact_root W V = true ->
  Q2R (diameter rationals W V) = diameter reals (Q2R W) (Q2R V).
Proof.
  intros exact. unfold diameter. rewrite (at_most_agrees (times rationals W W)).
  assert (Q2R (one_zero rationals W V) = one_zero reals (Q2R W) (Q2R V)) as zero
    by (unfold one_zero; now agree).
  assert (at_most reals (Q2R (times rationals W W)) (Q2R (whole rationals 2))
    = at_most reals (Q2R W * Q2R W) 2) as -> by now agree.
  cbn [at_most times whole reals]. destruct (Rle_dec (Q2R W * Q2R W) 2) as [low | high].
  - rewrite larger_agrees, zero. f_equal. unfold opposite. now agree.
  - rewrite larger_agrees, zero. f_equal. unfold parallel.
    rewrite at_most_agrees.
    assert (at_most reals (Q2R (times rationals V V))
      (Q2R (times rationals (whole rationals 2) (times rationals W W)))
            = at_most reals (Q2R V * Q2R V) (2 * (Q2R W * Q2R W))) as -> by now agree.
    cbn [at_most times whole reals].
    destruct (Rle_dec (Q2R V * Q2R V) (2 * (Q2R W * Q2R W))) as [light | heavy]; [now agree |].
    rewrite larger_agrees. f_equal; [now agree |].
    assert (Q2R (smaller_response rationals W V) = smaller_response reals (Q2R W) (Q2R V)) as share.
    { unfold smaller_response. agree. do 2 f_equal. unfold exact_root in exact. apply
        Bool.orb_true_iff in exact as [never | exact].
      { exfalso. apply high. apply Qle_bool_iff, Qle_Rle in never. rewrite Q2R_mult,
          whole_agrees in never. exact never. }
      apply Bool.orb_true_iff in exact as [never | exact].
      - exfalso. apply heavy. apply Qle_bool_iff, Qle_Rle in never.
        rewrite !Q2R_mult, whole_agrees in never. exact never.
      - rewrite (root_agrees _ exact). f_equal. now agree. }
    unfold parallel_at, square. agree. now rewrite share.
Qed.

Lemma lever_agrees rel (k : Q) : 0 < Q2R k -> Q2R (lever rationals rel k) = lever reals rel (Q2R k).
Proof.
  intros some. unfold lever. rewrite at_most_agrees.
  replace (Q2R (whole rationals 1)) with 1 by (symmetry; apply whole_agrees).
  cbn [at_most whole reals]. destruct (Rle_dec (Q2R k) 1); [now agree |]. destruct rel; now agree.
Qed.

Definition exact (X Y : Q) (p : weights rationals) : bool :=
  exact_root (over rationals (times rationals (w p) Y) X)
    (over rationals (times rationals (v p) (times rationals Y Y)) (times rationals X X)).

(** The value that Coq computes is the bound of the theorems. *)
Theorem evaluated_sensitivity rel (k X Y : Q) (p : weights rationals) :
  0 < Q2R k -> 0 < Q2R X -> exact X Y p = true ->
  Q2R (sensitivity_squared rationals rel k X Y p)
    = sensitivity_squared reals rel (Q2R k) (Q2R X) (Q2R Y) (to_reals p).
Proof.
  intros some radius rational. assert (Q2R X * Q2R X <> 0) as positive by nra.
  unfold sensitivity_squared. cbv zeta.
  set (W := over rationals (times rationals (w p) Y) X) in *.
  set (V :=
    over rationals (times rationals (v p) (times rationals Y Y)) (times rationals X X)) in *.
  assert (Q2R W = over reals (times reals (w (to_reals p)) (Q2R Y)) (Q2R X)) as <-
    by (unfold W; now agree).
  assert (Q2R V
    = over reals (times reals (v (to_reals p)) (times reals (Q2R Y) (Q2R Y)))
      (times reals (Q2R X) (Q2R X))) as <-
    by (unfold V; now agree).
  pose proof (lever_agrees rel k some) as leverage. pose proof (longest_agrees W V) as length.
  assert (Q2R (rows_squared rationals rel k W V) = rows_squared reals rel (Q2R k) (Q2R W) (Q2R V))
    as rows.
  { unfold rows_squared. destruct rel.
    - rewrite at_most_agrees.
      replace (Q2R (whole rationals 1)) with (whole reals 1) by (symmetry; apply whole_agrees).
      destruct (at_most reals (Q2R k) (whole reals 1)); [now apply diameter_agrees |].
      unfold square. agree. now rewrite leverage, length.
    - unfold square. agree. now rewrite leverage, length. }
  unfold eigenvalue_slack, square. destruct rel; agree; rewrite rows, leverage; reflexivity.
Qed.

Theorem evaluated_free_square_weight (X Y response : Q) :
  Q2R X <> 0 -> Q2R Y <> 0 ->
  Q2R (free_square_weight_squared rationals X Y response)
    = free_square_weight_squared reals (Q2R X) (Q2R Y) (Q2R response).
Proof. intros. unfold free_square_weight_squared, square. cbv zeta. now agree. Qed.

Theorem evaluated_places (columns : Q) :
  Q2R (places_squared rationals columns) = places_squared reals (Q2R columns)
  /\ Q2R (places_count_weight_squared rationals columns)
    = places_count_weight_squared reals (Q2R columns)
  /\ Q2R (places_square_weight_squared rationals) = places_square_weight_squared reals.
Proof.
  unfold places_squared, places_count_weight_squared, places_square_weight_squared.
  repeat split; now agree.
Qed.

Theorem evaluated_clipped rel (C : Q) :
  Q2R (clipped_sensitivity rationals rel C) = clipped_sensitivity reals rel (Q2R C).
Proof. unfold clipped_sensitivity. destruct rel; now agree. Qed.

(** What tests/proofs asks for: may the value be trusted, its numerator, its denominator. *)
Definition answer (trusted : bool) (q : Q) : bool * Z * Z := let r :=
  Qred q in (trusted, Qnum r, Zpos (Qden r)).
Definition sensitivity_at (rel : relation) (k X Y w v c e : Q) : bool * Z * Z :=
  let p := Build_weights rationals w v c e in answer (exact X Y p)
    (sensitivity_squared rationals rel k X Y p).
Definition free_at (X Y response : Q) : bool * Z * Z :=
  answer true (free_square_weight_squared rationals X Y response).
Definition places_at (columns : Q) : bool * Z * Z :=
  answer true (places_squared rationals columns).
Definition places_count_at (columns : Q) : bool * Z * Z :=
  answer true (places_count_weight_squared rationals columns).
Definition places_weight_at : bool * Z * Z :=
  answer true (places_square_weight_squared rationals).

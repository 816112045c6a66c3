(** Finite sums over lists: what every other file computes with. *)

Require Import Reals Lra Psatz List Permutation Arith Lia.
Import ListNotations.
Local Open Scope R_scope.

(** The sum of [f] over a list, and over the first [n] natural numbers. *)
Definition total {A : Type} (f : A -> R) (l : list A) : R :=
  fold_right (fun a rest => f a + rest) 0 l.
Definition below (n : nat) (f : nat -> R) : R := total f (seq 0 n).

Definition vector := nat -> R.
Definition dot (d : nat) (x y : vector) : R := below d (fun i => x i * y i).
Definition norm (d : nat) (x : vector) : R := sqrt (dot d x x).

Section Totals.
Context {A : Type}.
Implicit Types (f g : A -> R) (l : list A).

Lemma total_cons f a l : total f (a :: l) = f a + total f l.
Proof. reflexivity. Qed.

Lemma total_ext f g l : (forall a, In a l -> f a = g a) -> total f l = total g l.
Proof.
  induction l as [| a l IH]; intros same; [reflexivity |].
  rewrite !total_cons, same, IH; auto using in_eq, in_cons.
Qed.

Lemma total_app f l l' : total f (l ++ l') = total f l + total f l'.
Proof. induction l as [| a l IH]; [symmetry; apply Rplus_0_l |].
rewrite <- app_comm_cons, !total_cons, IH. lra. Qed.

Lemma total_plus f g l : total (fun a => f a + g a) l = total f l + total g l.
Proof. induction l as [| a l IH]; [cbn; lra |]. rewrite !total_cons, IH. lra. Qed.

Lemma total_minus f g l : total (fun a => f a - g a) l = total f l - total g l.
Proof. induction l as [| a l IH]; [cbn; lra |]. rewrite !total_cons, IH. lra. Qed.

Lemma total_scale c f l : total (fun a => c * f a) l = c * total f l.
Proof. induction l as [| a l IH]; [cbn; lra |]. rewrite !total_cons, IH. lra. Qed.

Lemma total_scale_r c f l : total (fun a => f a * c) l = total f l * c.
Proof. induction l as [| a l IH]; [cbn; lra |]. rewrite !total_cons, IH. lra. Qed.

Lemma total_zero l : total (fun _ => 0) l = 0.
Proof. induction l as [| a l IH]; [reflexivity |]. rewrite total_cons, IH. lra. Qed.

Lemma total_const c l : total (fun _ => c) l = INR (length l) * c.
Proof.
  induction l as [| a l IH]; [cbn; lra |].
  rewrite total_cons, IH. change (length (a :: l)) with (S (length l)). rewrite S_INR. lra.
Qed.

Lemma total_le f g l : (forall a, In a l -> f a <= g a) -> total f l <= total g l.
Proof.
  induction l as [| a l IH]; intros under; [cbn; lra |].
  rewrite !total_cons. apply Rplus_le_compat; auto using in_eq, in_cons.
Qed.

Lemma total_nonneg f l : (forall a, In a l -> 0 <= f a) -> 0 <= total f l.
Proof. intros nonneg. rewrite <- (total_zero l). now apply total_le. Qed.

Lemma total_squares f l : 0 <= total (fun a => f a * f a) l.
Proof. apply total_nonneg. intros; nra. Qed.

Lemma total_permutation f l l' : Permutation l l' -> total f l = total f l'.
Proof. induction 1; rewrite ?total_cons; lra. Qed.

(** Cauchy and Schwarz. *)
Lemma cauchy_schwarz f g l :
  Rsqr (total (fun a => f a * g a) l)
    <= total (fun a => f a * f a) l * total (fun a => g a * g a) l.
Proof.
  unfold Rsqr. induction l as [| a l IH]; [cbn; lra |]. rewrite !total_cons.
  pose proof (total_squares f l) as p. pose proof (total_squares g l) as q.
  set (F := total (fun a => f a * f a) l) in *. set (G := total (fun a => g a * g a) l) in *.
  set (C := total (fun a => f a * g a) l) in *. generalize (f a) (g a). intros u v.
  enough (2 * C * (u * v) <= F * (v * v) + G * (u * u)) by nra.
  destruct (Req_dec F 0) as [none | some].
  - assert (C = 0) by nra. nra.
  - assert (0 <= F * (F * (v * v) + G * (u * u) - 2 * C * (u * v))).
    { replace (F * (F * (v * v) + G * (u * u) - 2 * C * (u * v)))
        with (Rsqr (F * v - C * u) + (F * G - C * C) * (u * u)) by (unfold Rsqr; ring).
      apply Rplus_le_le_0_compat; [apply Rle_0_sqr | apply Rmult_le_pos; nra]. }
    assert (0 < F) by lra. nra.
Qed.
End Totals.

(** Sums over pairs. *)
Section Pairs.
Context {A B : Type}.
Implicit Types (l : list A) (m : list B).

Lemma total_mult (f : A -> R) (g : B -> R) l m :
  total f l * total g m = total (fun a => total (fun b => f a * g b) m) l.
Proof. rewrite <- total_scale_r. apply total_ext. intros. now rewrite total_scale. Qed.

Lemma total_pairs (f : A * B -> R) l m :
  total f (list_prod l m) = total (fun a => total (fun b => f (a, b)) m) l.
Proof.
  induction l as [| a l IH]; [reflexivity |].
  cbn [list_prod]. rewrite total_app, total_cons, IH. f_equal.
  clear. induction m as [| b m IH]; [reflexivity |]. cbn [map]. now rewrite !total_cons, IH.
Qed.

Lemma total_exchange (f : A -> B -> R) l m :
  total (fun a => total (f a) m) l = total (fun b => total (fun a => f a b) l) m.
Proof.
  induction l as [| a l IH]; [symmetry; apply total_zero |].
  rewrite total_cons, IH, <- total_plus. reflexivity.
Qed.

Lemma total_map (f : B -> R) (h : A -> B) l : total f (map h l) = total (fun a => f (h a)) l.
Proof. induction l as [| a l IH]; [reflexivity |]. cbn [map]. now rewrite !total_cons, IH. Qed.
End Pairs.

Lemma total_concat (A : Type) (f : A -> R) ls : total f (concat ls) = total (total f) ls.
Proof. induction ls as [| l ls IH]; [reflexivity |]. cbn [concat].
now rewrite total_app, total_cons, IH. Qed.

Lemma below_S n f : below (S n) f = below n f + f n.
Proof. unfold below. rewrite seq_S, total_app. cbn. lra. Qed.

Lemma below_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> below n f = below n g.
Proof. intros same. apply total_ext. intros i [_ inside]%in_seq. auto. Qed.

Lemma below_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> below n f <= below n g.
Proof. intros under. apply total_le. intros i [_ inside]%in_seq. auto. Qed.

Lemma below_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= below n f.
Proof. intros under. apply total_nonneg. intros i [_ inside]%in_seq. auto. Qed.

(** The only entry that is not zero. *)
Lemma below_single n j f : (j < n)%nat -> (forall i, i <> j -> f i = 0) -> below n f = f j.
Proof.
  intros inside zero. induction n as [| n IH]; [lia |]. rewrite below_S.
  destruct (Nat.eq_dec j n) as [-> | other].
  - rewrite (below_ext n f (fun _ => 0)) by (intros; apply zero; lia). unfold below.
    rewrite total_zero. lra.
  - rewrite IH by lia. rewrite (zero n) by lia. lra.
Qed.

(** Vectors. *)
Lemma dot_nonneg d x : 0 <= dot d x x.
Proof. apply total_squares. Qed.

Lemma dot_sym d x y : dot d x y = dot d y x.
Proof. apply below_ext. intros; lra. Qed.

Lemma dot_scale d c x y : dot d (fun i => c * x i) y = c * dot d x y.
Proof. unfold dot, below. rewrite <- total_scale. apply total_ext. intros; ring. Qed.

Lemma dot_add d x y z : dot d (fun i => x i + y i) z = dot d x z + dot d y z.
Proof. unfold dot, below. rewrite <- total_plus. apply total_ext. intros; ring. Qed.

Lemma dot_cauchy d x y : dot d x y * dot d x y <= dot d x x * dot d y y.
Proof. exact (cauchy_schwarz x y (seq 0 d)). Qed.

Lemma norm_le d x X : 0 <= X -> (norm d x <= X <-> dot d x x <= X * X).
Proof.
  intros nonneg. unfold norm. pose proof (dot_nonneg d x) as pos. split; intros bound.
  - pose proof (sqrt_pos (dot d x x)). rewrite <- (sqrt_sqrt _ pos). nra.
  - rewrite <- (sqrt_square X nonneg). now apply sqrt_le_1_alt.
Qed.

Lemma norm_scale d a z : norm d (fun i => a * z i) = Rabs a * norm d z.
Proof.
  unfold norm. rewrite dot_scale, dot_sym, dot_scale, <- Rmult_assoc.
  rewrite sqrt_mult_alt by apply Rle_0_sqr. f_equal. apply sqrt_Rsqr_abs.
Qed.
